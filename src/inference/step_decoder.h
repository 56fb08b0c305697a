#pragma once

#include <vector>

#include "inference/model.h"
#include "models/generate/search.h"

namespace posenc::inference {

/// Keys and values (H, capacity, Dh) of tokens, of which each row sees some.
struct TokenCache {
  at::Tensor keys, values;
};

/// The places in a cache that each row sees.
struct Seen {
  std::vector<const int32_t*> places;
  std::vector<int64_t> counts;
};

/// A frozen model that writes targets token by token. Rows of one source share its keys and values;
/// a row's own tokens are a list of places in the cache, so that beams change places by their
/// lists. All memory is there from the beginning.
class StepDecoder : public Decoder {
 public:
  /// `rows_per_source` targets of at most `capacity` tokens for each source of the memory.
  StepDecoder(const FrozenTransformer::Impl& model, const Memory& memory, int64_t rows_per_source,
              int64_t capacity);

  torch::Tensor step(const torch::Tensor& tokens) override;
  void select(const torch::Tensor& rows) override;

 private:
  void remember(const Memory& memory);
  void see();
  void attend(const TokenCache& cache, const Seen& seen, const float* query, int64_t stride,
              const float* bias) const;

  const FrozenTransformer::Impl& model_;
  int64_t rows_, capacity_, length_ = 0;
  std::vector<TokenCache> own_, memory_;  // a layer each
  std::vector<int32_t> places_, next_;    // (rows, capacity): of each row's tokens
  std::vector<int32_t> memory_places_;    // 0, 1, ...
  std::vector<int64_t> source_;           // of each row
  std::vector<int64_t> first_, lengths_;  // of each source's tokens in the memory
  at::Tensor memory_bias_;                // (rows, H, S), or undefined
  Seen own_seen_, memory_seen_;           // of this step
  at::Tensor input_, projected_, attended_, query_, logits_;  // (rows, .)
};

}  // namespace posenc::inference
