"""Real md arrays in a user-mode kernel, on simulated disks.

`lab.run` boots a scenario and runs a command in it. The host side and the guest side share only
`plan` and `wire`; the guest side imports nothing but the standard library, so that it starts fast.
"""
