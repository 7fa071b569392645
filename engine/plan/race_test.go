//go:build race

package plan

func init() { oracleWindows = 2 }
