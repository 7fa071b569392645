//go:build !linux

package servertest

import "syscall"

// dieWithParent is not to be had here: a killed test process leaves its servers.
func dieWithParent(*syscall.SysProcAttr) {}
