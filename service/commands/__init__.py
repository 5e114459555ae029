"""The command line.

start       where the command begins; says what to install where packages are missing
main        `frugal`: the commands, their options, messages and exit codes
local       train and show, with no server
predicting  predict, with no server
interview   ask: one question at a time with its price
remote/     the commands that talk to a server
parameters  --set and --penalties as they are typed
reporting   what a training came to, in words
"""
