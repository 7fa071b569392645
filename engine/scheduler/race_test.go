//go:build race

package scheduler

func init() { oracleWindows = 2 }
