#!/usr/bin/env python3
"""A program that was built with an installed posenc::gloo trains on two processes to the same loss as on one.

tests/package/data_parallel_test.py PROGRAM
"""

import os
import socket
import subprocess
import sys
import unittest

program: str


def reserved_port():
    """A socket with a port that nobody else is given while it is open; a server may still listen there."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    return one


class DataParallel(unittest.TestCase):
    def test_two_processes_reach_the_loss_of_one(self):
        alone = subprocess.run([program], capture_output=True, text=True, timeout=3000)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertRegex(alone.stdout, r"^loss 0\.\d+\n$")  # from log(1000) = 6.9
        with reserved_port() as port:
            by_hand = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port.getsockname()[1])}
            ranks = [subprocess.Popen([program], env={**by_hand, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
            printed = [rank.communicate(timeout=3000)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        self.assertEqual(printed, [alone.stdout, ""])


if __name__ == "__main__":
    program = sys.argv.pop()
    unittest.main()
