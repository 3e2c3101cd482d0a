# make setup   install what is missing: system packages, and .venv
# make demo    tune a real RAID6 of simulated disks, in the lab
# make test    lint, types and every test, those in the lab too
# make docs    build the documentation into site/; a broken link is an error
# make pages   write the reference pages that follow from the code
# make slow-tests   tests of some minutes each that not every change needs (an hour and a half, quiet)
# make faults  everything that can go wrong at every stage of a run (an hour); CI runs a few
# make kernel-tests  the lab's tests on the kernels of Debian trixie and unstable (root; an hour)
# make soak    200 kills at random moments (two hours)
# make check-kills   50 kills at random moments of a check (half an hour)
# make packages  wheel, sdist, and a Debian package each for bookworm and trixie, in dist/ (root)
# make machine-tests  Debian 12, 13 and unstable as whole emulated machines, from install to removal (root; hours)
# make machine-sample  the first steps of that, on Debian 13 (root; some minutes after the packages)
# make machine-cuts  ten power cuts each in a run, an apply and an apply --persist (root; hours)
# make release-check  what a version has to pass: every Python, the oldest libraries, the packages
# make fuzz    look long for a text that a parser trips over (some minutes)
# make bench-measure   whether measurements in the lab can be relied on (an hour)
# make bench-persist   how soon a persisted profile is back (some minutes)
# make bench-year   ten thousand passes of re-tuning, on synthetic arrays (an hour)
# make bench-guard   rebuilds under guard: with deadlines, by policy, beside fixed limits (some six hours; goes on where cut)
# make bench-forecast   forecasts beside the rebuilds that follow them (two hours)
# make bench-requests   writes in requests of whole stripes, beside the default (half an hour, quiet)
# make bench-raid10   what readers of a RAID 10 feel of a check and a rebuild (five minutes, quiet)
# make bench-rebuild   creation, check and rebuild by level and disks (a day; goes on where cut)
# make bench-design   designs of five disks beside a complete grid (six hours; goes on where cut)
# make bench-search   compare the strategies on synthetic arrays (an hour)
# make bench-grids    compare them on recorded arrays (some minutes)
# make bench-panel  the default command on real arrays, judged by fio (a day; goes on where cut)
# make bench-time-left  the time left that a run tells, beside what it took (an hour)
# make bench-published  what people have published, measured again in the lab (an hour; goes on where cut)
# make record-grids   record those: every setting of arrays in the lab (an hour, quiet)

PYTHON ?= python3
RAW := /dev/md0 --destructive /dev/md0
PACKAGES := mdadm fio util-linux user-mode-linux nbdkit nbdkit-plugin-dev qemu-system-common \
  gcc libc6-dev e2fsprogs xfsprogs lvm2 cryptsetup-bin fdisk udev kmod python3-venv
# What only the tests need: the tools that exports are made for, and a filesystem.
CONSUMERS := shellcheck systemd dbus tuned btrfs-progs chromium prometheus
# Of these, what is a service too.
SERVICES := tuned prometheus
test lint unit lab-tests slow-tests: PACKAGES += $(CONSUMERS)

.PHONY: setup system demo test lint unit lab-tests slow-tests faults soak check-kills fuzz \
  bench-measure bench-persist bench-guard bench-forecast bench-raid10 bench-rebuild bench-requests bench-search bench-year bench-grids bench-panel \
  bench-published bench-design bench-time-left record-grids

setup: system .venv/installed

system:
	@missing=$$(dpkg-query -W -f '$${Package} $${db:Status-Status}\n' $(PACKAGES) 2>/dev/null \
	  | awk '$$2 == "installed" { have[$$1] } END { n = split("$(PACKAGES)", want); \
	    for (i = 1; i <= n; i++) if (!(want[i] in have)) printf "%s ", want[i] }'); \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then as_root=; \
	elif sudo -n true 2>/dev/null; then as_root=sudo; \
	else echo "Packages are missing. As root, run: apt-get install $$missing" >&2; exit 1; fi; \
	for service in $(SERVICES); do case " $$missing" in *" $$service "*) \
	  echo "$$service is installed for the tests alone, so its service stays masked."; \
	  $$as_root ln -sf /dev/null /etc/systemd/system/$$service.service;; esac; done; \
	$$as_root apt-get update -q && \
	$$as_root env DEBIAN_FRONTEND=noninteractive \
	  apt-get install -q -y --no-install-recommends $$missing

.venv/installed: pyproject.toml
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q -e '.[dev]'
	@touch $@

demo: setup
	.venv/bin/autotune lab raid6-hdd --out demo -- .venv/bin/autotune run /dev/md0 \
	  --destructive /dev/md0 --workload quick --p99-ceiling resync=600ms --trials 12 --time 10min \
	  --ram-budget 128MiB --state-dir demo

test: setup lint
	.venv/bin/python -m pytest -m "not quiet and not slow" -n 2 --dist worksteal --durations=25
	.venv/bin/python -m pytest -m "quiet and not slow"

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache
	.venv/bin/python docs/generate.py --check
	.venv/bin/mkdocs build --strict

.PHONY: docs pages

docs: setup
	.venv/bin/python docs/generate.py --check
	.venv/bin/mkdocs build --strict

pages: setup
	.venv/bin/python docs/generate.py

unit: setup
	.venv/bin/python -m pytest tests/unit tests/contract

lab-tests: setup
	.venv/bin/python -m pytest tests/lab -m "not slow"

slow-tests: setup
	.venv/bin/python -m pytest -m "slow and not quiet" -rP -n 2 --dist worksteal
	.venv/bin/python -m pytest -m "slow and quiet" -rP

IN_LAB = .venv/bin/autotune lab $(1) -- .venv/bin/python -m pytest -q -p no:cacheprovider
IN_FAULTS = $(call IN_LAB,tests/lab/faults.toml)

faults: setup
	$(IN_FAULTS) -v -o faulthandler_timeout=240 tests/lab/guest_faults.py
	$(IN_FAULTS) -v -o faulthandler_timeout=240 tests/lab/guest_faults_above.py

soak: setup
	$(IN_FAULTS) tests/lab/guest_soak.py

check-kills: setup
	AUTOTUNE_KILLS=50 $(call IN_LAB,tests/lab/check.toml) tests/lab/guest_check_kills.py

bench-measure: setup
	.venv/bin/autotune lab raid6-hdd -- .venv/bin/python -m benchmarks.measure.intervals $(RAW) --stripes 4096
	.venv/bin/autotune lab raid6-hdd -- .venv/bin/python -m benchmarks.measure.savings $(RAW)
	.venv/bin/autotune lab raid6-hdd -- .venv/bin/python -m benchmarks.measure.nothing $(RAW)

bench-persist: setup
	.venv/bin/autotune lab tests/lab/elsewhere.toml -- \
	  .venv/bin/python -m benchmarks.persist /dev/md0 examples/profile.json

bench-guard: setup
	.venv/bin/python -m benchmarks.guard

bench-requests: setup
	for array in raid5-ssd raid6-hdd; do \
	  .venv/bin/autotune lab $$array -- .venv/bin/python -m benchmarks.requests $(RAW) || exit 1; \
	done

bench-raid10: setup
	.venv/bin/autotune lab benchmarks/forecast/arrays/raid10-4hdd.toml -- .venv/bin/python -m benchmarks.raid10 20 /dev/vdb
	.venv/bin/autotune lab benchmarks/forecast/arrays/raid10-4ssd.toml -- .venv/bin/python -m benchmarks.raid10 100 /dev/vdb

bench-rebuild: setup
	.venv/bin/python -m benchmarks.rebuild --tune

bench-forecast: setup
	.venv/bin/python -m benchmarks.forecast

# What only these need, so that `make setup` does without.
MACHINES := machine-sample machine-tests machine-cuts release-check
packages $(MACHINES): PACKAGES += mmdebstrap dpkg-dev pandoc
$(MACHINES): PACKAGES += qemu-system-x86
kernel-tests release-check: PACKAGES += mmdebstrap patchelf $(CONSUMERS)
# Of the newest there are machines, but no package: the wheel is installed there.
SUITES := bookworm trixie unstable
MACHINE_CACHE := /var/cache/autotune-machines

.PHONY: kernel-tests packages $(MACHINES)
.PRECIOUS: $(MACHINE_CACHE)/%.img

packages: setup
	.venv/bin/python -m pip install -q build
	.venv/bin/python packaging/build.py $(filter-out unstable,$(SUITES))

$(MACHINE_CACHE)/%.img: tests/machine/image.sh packaging/constraints.txt
	mkdir -p $(@D)
	tests/machine/image.sh $* $@

LAB_KERNELS := trixie unstable
LAB_KERNEL = $(MACHINE_CACHE)/lab-$(1)/usr/bin/linux.uml
.PRECIOUS: $(call LAB_KERNEL,%)

$(call LAB_KERNEL,%): packaging/program_of.sh
	mkdir -p $(MACHINE_CACHE)
	packaging/program_of.sh $* $(MACHINE_CACHE)/lab-$* linux.uml user-mode-linux
	touch $@

kernel-tests: setup $(foreach suite,$(LAB_KERNELS),$(call LAB_KERNEL,$(suite)))
	for suite in $(LAB_KERNELS); do \
	  AUTOTUNE_LAB_KERNEL=$(call LAB_KERNEL,$$suite) \
	    .venv/bin/python -m pytest tests/lab -m "not slow" || exit 1; done

IN_MACHINE = .venv/bin/python -m pytest -v -p no:cacheprovider --rootdir tests/machine \
  -c /dev/null tests/machine/$(2) --suite $(1)
IN_MACHINES = for suite in $(SUITES); do $(call IN_MACHINE,$$suite,$(1)) || exit 1; done

machine-sample: packages $(MACHINE_CACHE)/trixie.img
	$(call IN_MACHINE,trixie,machine_path.py -k 'test_install or test_doctor')

machine-tests: packages $(SUITES:%=$(MACHINE_CACHE)/%.img)
	$(call IN_MACHINES,machine_path.py)
	$(call IN_MACHINES,machine_root.py)

machine-cuts: packages $(SUITES:%=$(MACHINE_CACHE)/%.img)
	$(call IN_MACHINES,machine_cuts.py --cuts 10)

release-check: packages
	.venv/bin/python -m pip install -q uv
	.venv/bin/python packaging/versions.py
	.venv/bin/python -m pytest -q -m slow tests/unit/test_wheel.py

fuzz: setup
	AUTOTUNE_FUZZ=many .venv/bin/python -m pytest tests/unit/test_fuzz.py

bench-year: setup
	OMP_NUM_THREADS=1 .venv/bin/python -m benchmarks.service.year

bench-search: setup
	OMP_NUM_THREADS=1 .venv/bin/python -m benchmarks.search --instances 48 --judge bayes

bench-grids: setup
	OMP_NUM_THREADS=1 .venv/bin/python -m benchmarks.search --grids benchmarks/search/grids/*.json \
	  --instances 9 --budgets 15 25 --judge bayes

bench-panel: setup
	.venv/bin/python -m benchmarks.panel --best
	.venv/bin/python -m benchmarks.panel --seeds 3

bench-time-left: setup
	.venv/bin/python -m benchmarks.time_left

bench-design: setup
	.venv/bin/python -m benchmarks.design

bench-published: setup
	.venv/bin/python -m benchmarks.published

RECORD := .venv/bin/python -m benchmarks.search.record $(RAW) --values 3 --passes 2

record-grids: setup
	for array in raid6-hdd raid5-ssd; do \
	  .venv/bin/autotune lab $$array --out recorded -- $(RECORD) --out recorded/$$array.json \
	    && cp recorded/$$array.json benchmarks/search/grids/ || exit 1; \
	done
