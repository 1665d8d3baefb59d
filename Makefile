# One place for the flags: changing them rebuilds everything. Cross-module optimisation is worth a factor of ten in the
# byte-level code (a call across modules is inlined); warnings are errors everywhere.
FLAGS        := -Xswiftc -warnings-as-errors
RELEASE      := -c release $(FLAGS) -Xswiftc -cross-module-optimization
LOG          ?= sqlite
STORE        ?= sqlite
SEED         ?= 1
MINUTES      ?= 30
ACCOUNTS     ?= 3000
TARGET       ?= all
SECONDS      ?= 60
HISTORIES    ?= 100000
# The torture's own defaults: the whole deployment, and another seed each time. What is given counts for it too.
TORTURE_LOG   = $(if $(filter file,$(origin LOG)),kafka,$(LOG))
TORTURE_STORE = $(if $(filter file,$(origin STORE)),postgres,$(STORE))
TORTURE_SEED  = $(if $(filter file,$(origin SEED)),,$(SEED))
export FLAGS RELEASE

.DEFAULT_GOAL := help
.PHONY: help demo test model torture failover build check bench fuzz fmt clean setup

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## A day of purchases through the whole pipeline (LOG=sqlite|kafka STORE=sqlite|postgres SEED= ACCOUNTS=)
	@Scripts/demo --log $(LOG) --store $(STORE) --seed $(SEED) --accounts $(ACCOUNTS)

test: ## Every test: unit, rooms, Kafka, PostgreSQL, processes, outside judges
	@Scripts/test

model: setup ## Random histories: the real fold beside a naive model in Python (HISTORIES= SEED=)
	@Scripts/swift build $(RELEASE) --product PurchasesHistories
	@PURCHASES_MODEL_PROGRAM=.build/release/PurchasesHistories PURCHASES_MODEL_HISTORIES=$(HISTORIES) \
	  $(if $(filter file,$(origin SEED)),,PURCHASES_MODEL_SEED=$(SEED)) python3 Tests/Judges/run.py --only judge_model

build: setup ## The executable, optimised: .build/release/purchases
	@Scripts/swift build $(RELEASE) --product purchases

check: setup ## Before each commit: format, warnings as errors, unit and room tests
	@Scripts/check

torture: ## Purchases while processes, brokers, database and network fail (LOG=kafka|sqlite STORE=postgres|sqlite MINUTES= SEED=)
	@Scripts/torture --log $(TORTURE_LOG) --store $(TORTURE_STORE) --minutes $(MINUTES) $(if $(TORTURE_SEED),--seed $(TORTURE_SEED))

failover: ## How long work stands still after a fault, beside a plain Kafka client
	@Scripts/failover

fuzz: setup ## Bytes that nobody meant, under the address sanitizer (TARGET=all|jws|payload|… SECONDS=)
	@Scripts/fuzz $(TARGET) $(SECONDS)

bench: ## Measurements, each beside its limit in the same run (ONLY=jws,cores,cold,… VERIFICATIONS= LARGE=)
	@Scripts/bench

fmt: ## Format all Swift code
	@swift format format --in-place --parallel --recursive Package.swift Sources Tests Snippets

clean: ## Remove what was built and fetched
	@rm -rf .build .cache

setup:
	@Scripts/setup
