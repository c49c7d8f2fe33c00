# Every task is one line that calls a script in .ci/; continuous integration runs the very same scripts.
# Extra arguments for a script go into `args`: make test args="tests/test_keys.py -x"

.DEFAULT_GOAL := help
.PHONY: help setup check test test-engines test-pythons test-integrations campaign docs docs-site screenshots client bench bench-full serve

help:  ## list the tasks
	@.ci/help $(MAKEFILE_LIST)

setup: ## create .venv and install Holdfast with all that its developers need
	@.ci/setup

check: ## formatting, lint, types and import rules, without running the tests
	@.ci/check

test:  ## check, then run all tests; args="-k keys" chooses some
	@.ci/test $(args)

test-engines: ## run everything on every engine; args="--engines postgres tests/jobs" chooses
	@.ci/test-engines $(args)

test-pythons: ## run everything on every Python that is installed; args="tests/jobs" chooses
	@.ci/test-pythons $(args)

test-integrations: ## install the wheel with its extras into a fresh environment, and run the web examples there
	@.ci/test-integrations

campaign: ## attack the store for minutes, and write docs/reliability.md; args="--minutes 10 --seed 1"
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

bench-full: ## the same with large stores and many rounds
	@.ci/bench --full

serve: ## install and run the server; args="--data data"
	@.ci/serve $(args)
