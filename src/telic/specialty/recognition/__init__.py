"""How well classifiers recognise a specialty from diagnoses, and what chance gives."""
