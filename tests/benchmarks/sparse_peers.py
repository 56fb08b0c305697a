"""What sparse_benchmark.cpp compares with: `sparse_peers.py FOLDER`, one thread. It writes FOLDER/masked, a BERT-base with a head for masked
words and random weights, FOLDER/model, a SparseEncoder whose documents are its SPLADE and whose queries are a table, the lines of
FOLDER/documents.txt, and FOLDER/cases.safetensors with what the package makes of them.

Answers each line of stdin with the seconds of one call:

vocabulary   the logits of `hidden` (8, 128, 768), 30,522 words, and SpladePooling
documents    encode_document() of 8 documents of 16 to 128 tokens
query        encode_query() of the last of them
"""

import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from sentence_transformers import SparseEncoder
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

WORDS, BATCH, LENGTH = 30_522, 8, 128


def sparse_encoder(folder: Path) -> SparseEncoder:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(WORDS - 5))]
    model = BertForMaskedLM(BertConfig(vocab_size=WORDS))
    torch.nn.init.normal_(model.cls.predictions.bias, -1.0, 0.3)  # as of trained models, most weights are 0
    model.save_pretrained(folder / "masked")
    tokenizer = BertTokenizer(vocab={word: i for i, word in enumerate(words)}, model_max_length=512)
    tokenizer.save_pretrained(folder / "masked")
    document = [Transformer(str(folder / "masked"), transformer_task="fill-mask"), SpladePooling("max")]
    router = Router.for_query_document([SparseStaticEmbedding(tokenizer, torch.rand(WORDS))], document)
    SparseEncoder(modules=[router], device="cpu").save_pretrained(str(folder / "model"), create_model_card=False)
    return SparseEncoder(str(folder / "model"), device="cpu")


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = sparse_encoder(folder)
    masked, pooling = BertForMaskedLM.from_pretrained(folder / "masked").eval(), SpladePooling("max").eval()
    lengths = torch.linspace(LENGTH - 2, 14, BATCH).long()
    documents = [" ".join(f"w{i}" for i in torch.randint(WORDS - 5, (int(length),)).tolist()) for length in lengths]
    (folder / "documents.txt").write_text("\n".join(documents))
    with torch.inference_mode():
        hidden, mask = torch.randn(BATCH, LENGTH, masked.config.hidden_size), torch.ones(BATCH, LENGTH, dtype=torch.long)

        def pooled() -> torch.Tensor:
            return pooling({"token_embeddings": masked.cls(hidden), "attention_mask": mask})["sentence_embedding"]

        calls = {"vocabulary": pooled, "documents": lambda: model.encode_document(documents, batch_size=BATCH),
                 "query": lambda: model.encode_query([documents[-1]])}  # fmt: skip
        save_file({"hidden": hidden.clone(), "pooled": pooled().clone(), "vectors": calls["documents"]().to_dense().clone(),
                   "query": calls["query"]().to_dense().clone()}, folder / "cases.safetensors")  # fmt: skip
        print("ready", flush=True)
        for line in sys.stdin:
            start = time.perf_counter()
            calls[line.strip()]()
            print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
