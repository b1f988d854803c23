// SPDX-License-Identifier: GPL-2.0-only
module foliolab/bbolt

go 1.17

require go.etcd.io/bbolt v1.3.8

require golang.org/x/sys v0.4.0 // indirect
