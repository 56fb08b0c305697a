#pragma once

#include "inference/embedding.h"
#include "inference/layers.h"
#include "inference/stale_check.h"

namespace posenc {

struct FrozenEncoder::Impl {
  TransformerEncoderOptions options;
  inference::StaleCheck watch;
  inference::EncoderStack stack;
};

struct FrozenTransformer::Impl {
  TransformerOptions options;
  inference::StaleCheck watch;
  inference::Embedding src_embedding, tgt_embedding;
  inference::EncoderStack encoder;
  inference::DecoderStack decoder;
  inference::Projection final_layer;
};

namespace inference {

/// The encoder's output for a batch.
struct Memory {
  at::Tensor rows;  ///< (rows, D)
  Packing packing;
};

/// Encodes ids (B, S), skipping padding.
Memory encode(const FrozenTransformer::Impl& model, const at::Tensor& src,
              const AttentionMask& src_mask);

}  // namespace inference
}  // namespace posenc
