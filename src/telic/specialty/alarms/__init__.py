"""Accesses outside the declared specialty: judged, explained, reviewed, told to patients."""
