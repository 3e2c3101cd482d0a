"""`autotune design`: the array to make of blank disks, measured before there is data."""
