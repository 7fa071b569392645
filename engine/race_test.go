//go:build race

package engine

func init() { oracleWindows = 2 }
