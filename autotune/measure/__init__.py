"""From a setting in force to figures: phases, fio, checks, the scratch file."""
