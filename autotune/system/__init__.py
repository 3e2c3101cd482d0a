"""What is on this machine: arrays, disks, what lies above them, memory. Changes nothing."""
