# SPDX-License-Identifier: GPL-2.0-only
# What Debian's scripts would have made for Java, and the same for the driver: classes as the JVM has them in
# memory. It is made once, on the disk; loading them takes half of the driver's time otherwise.
MAKEFLAGS += --no-builtin-rules

RECORDS := $(shell seq 1 2000)

/src/lucene.jsa: /src/lucene /src/driver.jar
	/usr/lib/jvm/java-21-openjdk-*/bin/java -Xshare:dump -XX:+UseSerialGC >/dev/null 2>&1
	mkdir /tmp/index
	{ echo create; for i in $(RECORDS); do echo put $$i 0; done; echo commit; echo close; \
	  echo open ro; echo get 1; echo first; echo next 100; } | \
	LUCENE_ARCHIVE=-XX:ArchiveClassesAtExit=$@ sh /src/lucene /tmp/index none
