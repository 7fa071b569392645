module xtimer/httpapi/client

go 1.24.0
