#!/usr/bin/env bash
# A regression planted into a real llama.cpp server, and what the gate says: prompts are computed in pieces of 32 tokens
# instead of 512 (n_ubatch), and a server with the default settings is measured beside it, block by block. About two minutes.
set -u
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/chat.yaml" <<'YAML'
description: A medium prompt and a short answer.
input_tokens: [256, 512]
output_tokens: 32
requests: 16
warmups: 1
YAML
"$python" -m pytest perf_tests/test_regression.py -q -p no:cacheprovider --perf-workloads "$folder" \
  --perf-engine-config "n_ubatch=32" --perf-reference-config "" --perf-blocks 6
