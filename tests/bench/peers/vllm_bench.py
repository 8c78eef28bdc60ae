#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens/s of vLLM on CPUs, for the shape of a GGUF file; run by compare.py.

    echo prefill:512 decode:16 | $(tests/bench/peers/install.sh vllm)/bin/python \\
        tests/bench/peers/vllm_bench.py model.gguf --threads 2

vLLM reads no GGUF on CPUs: it gets the file's shape and makes weights of its own for it; in bf16,
or in f32 where oneDNN has no bf16 for the CPU (without AVX-512): there vLLM's bf16 is the better of
the two at one row (3.0 tokens/s to 2.1 for m1b on a Zen 3) and many times slower at 128. No words,
ids alone. It takes most of a minute to start, so one process answers many cases: a line `ready`,
then a figure for each case that comes in.
"""
import argparse, itertools, json, os, pathlib, random, statistics, sys, tempfile, time

LONGEST = 4096  # tokens of a sequence, and of all the prompts of a batch


def config_of(file):
    from gguf import GGUFReader

    fields = GGUFReader(file).fields
    architecture = fields["general.architecture"].contents()

    def value(key):
        return fields[f"{architecture}.{key}"].contents()

    heads, hidden = value("attention.head_count"), value("embedding_length")
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": hidden, "num_hidden_layers": value("block_count"),
        "intermediate_size": value("feed_forward_length"), "num_attention_heads": heads,
        "num_key_value_heads": value("attention.head_count_kv"), "head_dim": hidden // heads,
        "rms_norm_eps": value("attention.layer_norm_rms_epsilon"),
        "rope_theta": value("rope.freq_base"), "max_position_embeddings": value("context_length"),
        "vocab_size": len(fields["tokenizer.ggml.tokens"].data), "tie_word_embeddings": True,
        "bos_token_id": 1, "eos_token_id": 2,
    }


class Engine:
    def __init__(self, config):
        import torch
        from vllm import LLM

        wide = not torch.ops.mkldnn._is_mkldnn_bf16_supported()
        self.vocabulary = config["vocab_size"]
        self.random, self.names = random.Random(1), map(str, itertools.count())
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "config.json").write_text(json.dumps(config))
            # Eager: its compiler takes minutes before the first step.
            self.engine = LLM(folder, load_format="dummy", skip_tokenizer_init=True,
                              max_model_len=LONGEST, max_num_batched_tokens=LONGEST,
                              dtype="float32" if wide else "bfloat16",
                              enable_prefix_caching=False, enforce_eager=True).llm_engine

    def seconds(self, prompts, tokens, answer):
        """Of `prompts` prompts of `tokens` random ids in one step, and of the `answer` steps
        after it."""
        from vllm import SamplingParams

        for _ in range(prompts):
            self.engine.add_request(
                next(self.names),
                {"prompt_token_ids": self.random.choices(range(self.vocabulary), k=tokens)},
                SamplingParams(max_tokens=1 + answer, min_tokens=1 + answer, temperature=0,
                               ignore_eos=True, detokenize=False))
        start, first = time.perf_counter(), None
        while self.engine.has_unfinished_requests():
            if self.engine.step() and first is None:
                first = time.perf_counter()
        return first - start, time.perf_counter() - first

    def prefill(self, count, passes):
        self.seconds(1, count, 0)  # what is slow once only
        return count / statistics.median(self.seconds(1, count, 0)[0] for _ in range(passes))

    def decode(self, count, context, answer):
        self.seconds(count, context, 1)
        return count * answer / self.seconds(count, context, answer)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     epilog="\n\n".join(__doc__.split("\n\n")[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--passes", type=int, default=3, help="over a prompt; their median")
    parser.add_argument("--context", type=int, default=64, help="tokens before those of a decode")
    parser.add_argument("--answer", type=int, default=32, help="tokens timed of each sequence")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS=str(options.threads), VLLM_CPU_KVCACHE_SPACE="1",
                      VLLM_CPU_OMP_THREADS_BIND="nobind", VLLM_NO_USAGE_STATS="1",
                      VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1")
    # vLLM logs to standard output; that is for the figures alone.
    figures = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    engine = Engine(config_of(options.file))
    print("ready", file=figures, flush=True)
    for case in (word for line in sys.stdin for word in line.split()):
        kind, count = case.split(":")
        rate = (engine.prefill(int(count), options.passes) if kind == "prefill" else
                engine.decode(int(count), options.context, options.answer))
        print(f"{rate:.2f}", file=figures, flush=True)


if __name__ == "__main__":
    main()
