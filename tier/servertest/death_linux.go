package servertest

import "syscall"

// dieWithParent has the kernel kill the process when the thread that starts it
// is gone.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
