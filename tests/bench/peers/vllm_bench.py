#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens/s of vLLM on CPUs, for the shape of a GGUF file; run by compare.py.

    $(tests/bench/peers/install.sh vllm)/bin/python tests/bench/peers/vllm_bench.py \\
        model.gguf --threads 2 --prefill 512
    ... model.gguf --threads 2 --decode 16 --context 64 --answer 32

vLLM reads no GGUF on CPUs: it gets the file's shape and makes weights of its own for it; in bf16,
or in f32 where oneDNN has no bf16 for the CPU (without AVX-512): there vLLM's bf16 is the better of
the two at one row (3.0 tokens/s to 2.1 for m1b on a Zen 3) and many times slower at 128. No words,
ids alone. The last line is the figure.
"""
import argparse, json, os, pathlib, random, statistics, tempfile, time


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
    def __init__(self, config, tokens):
        import torch
        from vllm import LLM

        wide = not torch.ops.mkldnn._is_mkldnn_bf16_supported()
        self.vocabulary = config["vocab_size"]
        self.random = random.Random(1)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "config.json").write_text(json.dumps(config))
            # Eager: its compiler takes minutes before the first step.
            self.llm = LLM(folder, load_format="dummy", skip_tokenizer_init=True,
                           max_model_len=tokens, dtype="float32" if wide else "bfloat16",
                           enable_prefix_caching=False, enforce_eager=True)

    def seconds(self, prompts, tokens, answer):
        """Of `prompts` prompts of `tokens` random ids and `answer` tokens after each."""
        from vllm import SamplingParams

        ids = [{"prompt_token_ids": self.random.choices(range(self.vocabulary), k=tokens)}
               for _ in range(prompts)]
        start = time.perf_counter()
        self.llm.generate(ids, SamplingParams(max_tokens=answer, min_tokens=answer, temperature=0,
                                              ignore_eos=True, detokenize=False), use_tqdm=False)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     epilog="\n\n".join(__doc__.split("\n\n")[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, help="tokens of a prompt")
    parser.add_argument("--decode", type=int, help="sequences")
    parser.add_argument("--passes", type=int, default=3, help="over the prompt; their median")
    parser.add_argument("--context", type=int, default=64, help="tokens before those of a decode")
    parser.add_argument("--answer", type=int, default=32, help="tokens timed of each sequence")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS=str(options.threads), VLLM_CPU_KVCACHE_SPACE="2",
                      VLLM_CPU_OMP_THREADS_BIND="nobind", VLLM_NO_USAGE_STATS="1",
                      VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1")

    count = options.prefill or options.decode
    length = options.prefill or options.context + options.answer
    engine = Engine(config_of(options.file), length + 8)
    if options.prefill:
        engine.seconds(1, count, 1)  # what is slow once only
        rate = count / statistics.median(engine.seconds(1, count, 1) for _ in range(options.passes))
    else:
        engine.seconds(count, options.context, 2)
        prompt = engine.seconds(count, options.context, 1)
        rate = count * options.answer / (
            engine.seconds(count, options.context, 1 + options.answer) - prompt)
    print(f"\n{rate:.2f}")


if __name__ == "__main__":
    main()
