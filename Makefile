# Every task is one line that calls a script in .ci/; continuous integration runs the very same scripts.
# Extra arguments for a script go into `args`: make test args="tests/test_keys.py -x"

.DEFAULT_GOAL := help
.PHONY: help setup check test test-engines test-pythons test-integrations campaign docs docs-site screenshots client bench bench-full serve

help:  ## list the tasks
	@.ci/help $(MAKEFILE_LIST)

setup: ## create .venv and install Holdfast with the tools that developers need
	@.ci/setup

check: ## check formatting, lint, types and import rules, without running the tests
	@.ci/check

test:  ## run check, then all tests; args="-k keys" selects some
	@.ci/test $(args)

test-engines: ## run all tests on every engine; args="--engines postgres tests/jobs" selects some
	@.ci/test-engines $(args)

test-pythons: ## run all tests on every installed Python; args="tests/jobs" selects some
	@.ci/test-pythons $(args)

test-integrations: ## install the wheel with its extras into a fresh environment, and run the web examples there
	@.ci/test-integrations

campaign: ## try to break the store, and write docs/reliability.md; args="--minutes 10 --seed 1"
	@.ci/campaign $(args)

docs:  ## generate docs/reference/ and docs/limits.md from the source, and draw the diagrams
	@.ci/docs

docs-site: ## build the documentation site into build/site, and fail at a link that leads nowhere
	@.ci/docs-site

screenshots: ## make the pictures of the dashboard for README and docs
	@.ci/screenshots

client: ## generate src/holdfast/client/generated/ from operations.py
	@.ci/client

bench: ## run all benchmarks, quickly, and write docs/benchmarks.md; args="engine" runs one
	@.ci/bench $(args)

bench-full: ## run all benchmarks with large stores and many rounds
	@.ci/bench --full

serve: ## install Holdfast and run its server; args="--data data"
	@.ci/serve $(args)
