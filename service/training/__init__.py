"""Training: from a table to a version.

learners, pricing, spec, judging    what can be asked for, and whether it can be done
datasets, jobs                      what is stored, one function per move
run, measuring                      a table to a measured ensemble
child, frames, process              the process that trains, and how it is spoken to
supervising                         the loop that claims jobs and has them trained
"""
