"""The doctor's contract: `diagnose` and the returned findings."""

from sparkmirror.doctor.diagnosis import diagnose as diagnose
from sparkmirror.doctor.finding import Finding as Finding
from sparkmirror.doctor.finding import Severity as Severity
