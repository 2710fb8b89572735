"""The doctor's contract: `diagnose` and the returned findings."""

from sparkmirror.look.doctor.diagnosis import diagnose as diagnose
from sparkmirror.look.doctor.finding import Finding as Finding
from sparkmirror.look.doctor.finding import Severity as Severity
