package httpapi

import _ "embed"

// openAPI describes every route, parameter and schema; it is written by hand,
// and openapi_test.go holds it against the routing table and the real answers.
//
//go:embed openapi.json
var openAPI []byte

// getOpenAPI is GET /openapi.json.
func (s *Server) getOpenAPI(*request) (reply, error) { return reply{fixed: openAPI}, nil }
