"""Runs a command on a terminal of a given width, and prints what the terminal receives.

Usage: terminal.py COLUMNS COMMAND ARGUMENTS...
"""

import fcntl
import os
import pty
import struct
import sys
import termios

columns, command = int(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    # The child waits until the terminal has its width.
    sys.stdin.readline()
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
attributes = termios.tcgetattr(terminal)
attributes[3] &= ~termios.ECHO
termios.tcsetattr(terminal, termios.TCSANOW, attributes)
os.write(terminal, b"\n")
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
