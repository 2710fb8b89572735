"""The doctor's contract: what a finding is, and `diagnose`."""

from sparkmirror.doctor.diagnosis import diagnose as diagnose
from sparkmirror.doctor.finding import Finding as Finding
from sparkmirror.doctor.finding import Severity as Severity
