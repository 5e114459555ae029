"""Training: from a table to a version.

learners, pricing, spec, judging    what can be asked for, and whether it can be done
datasets, jobs                      what is stored, one function per move
run, measuring                      a table to a measured ensemble
child, errand, frames, process      the process that trains, and how it is spoken to
vitals, priority                    whether it works, and how much of the processors it gets
supervising, leasing                the loop that claims jobs and has them trained, and holds them meanwhile
watching, sweeping                  who is told of a job's events, and what is forgotten
"""
