#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <string>
#include <utility>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/core/opaque.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/export.h"
#include "posenc/positions/functional/rotary.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc {
struct RotaryEmbeddingAccess;  // private
}

namespace posenc POSENC_EXPORT {

/// The sequence length for which a scaling that depends on it (rotary::Dynamic, LongRope, PhiMoe)
/// is computed.
enum class LengthRule {
  /// As in transformers: LongRope and PhiMoe by the largest position of the call; Dynamic by the
  /// largest of all calls so far, until a call stays below max_position. The result of a call then
  /// depends on earlier calls.
  System,
  PerCall,  ///< by the largest position of the call
  /// RotaryEmbeddingOptions::length in every call, so that cached keys are rotated as later ones.
  Fixed,
};

/// Options of RotaryEmbedding.
struct RotaryEmbeddingOptions {
  /// The default options for a rotary embedding.
  RotaryEmbeddingOptions(RotaryOptions rotary)
      : rotary_(std::move(rotary)), head_axis_(rotary_.head_axis()) {}

  /// The rotary embedding.
  TORCH_ARG(RotaryOptions, rotary);
  /// The order of the axes of q and k; unless set, that of the mirrored system.
  TORCH_ARG(rotary::HeadAxis, head_axis);
  /// The length for which frequencies that depend on it are computed.
  TORCH_ARG(LengthRule, length_rule) = LengthRule::System;
  /// The length of LengthRule::Fixed.
  TORCH_ARG(int64_t, length) = 0;
  /// Whether `inv_freq` is in the state_dict: ESM, Wav2Vec2-Conformer, CLVP, Stable Audio.
  TORCH_ARG(bool, persistent) = false;
  /// Whether to(dtype) rounds the frequencies, as in Python: in bfloat16 to another angle.
  TORCH_ARG(bool, casts_frequencies) = false;
  /// Whether the frequencies are multiplied by exp(alpha), a saved buffer: Mistral Large 4.
  TORCH_ARG(bool, learned_scale) = false;
  /// The most rows of cos and sin to cache; later positions are computed in each call.
  TORCH_ARG(int64_t, cache_rows) = 32768;

  POSENC_FIELDS(RotaryEmbeddingOptions, rotary_, head_axis_, length_rule_, length_, learned_scale_);
  POSENC_TRAINING_FIELDS(persistent_, casts_frequencies_, cache_rows_);
};

struct RotaryEmbeddingState;
extern template class detail::Opaque<RotaryEmbeddingState>;

/// Rotates queries and keys by their positions; for the formula see RotaryOptions.
///
/// q: (B, H, L, Dh), k: (B, Hkv, L, Dh), or with HeadAxis::AfterLength (B, L, H, Dh) and
/// (B, L, Hkv, Dh); see functional::rotary()  ->  as q and k.
///
/// ```cpp
/// posenc::RotaryEmbedding rotary(posenc::rotary_preset("llama", 64).base(500000.0));
/// auto q = torch::randn({2, 8, 16, 64}), k = torch::randn({2, 2, 16, 64});
/// std::tie(q, k) = rotary->forward(q, k);  // positions 0 ... 15
/// ```
///
/// cos and sin are computed once for each position, dtype and device, in tables that grow and that
/// all modules with equal options and frequencies share, as long as one of them lives. forward()
/// may be called from several threads at once. A forward does not wait for a GPU, except with
/// explicit positions there that have to be read back: those of a scaling that depends on the
/// length, and those of Precision::Exact, whose rows are computed on the CPU.
///
/// Keys: buffer `inv_freq` (n), which stays float32 (float64 with rotary::AngleType::Float64)
/// unless casts_frequencies(true); not in PyTorch's state_dict unless persistent(true); absent with
/// Precision::Exact. With learned_scale(true) also buffer `alpha` (n).
///
/// Errors: those of functional::rotary(); at construction, c10::ValueError for LengthRule::Fixed
/// without a length, and for persistent(true) or learned_scale(true) with Precision::Exact.
///
/// Source: transformers' LlamaRotaryEmbedding and similar classes.
class RotaryEmbeddingImpl : public Cloneable<RotaryEmbeddingImpl>, public StateDictTraits {
 public:
  /// A module for a rotary embedding.
  explicit RotaryEmbeddingImpl(RotaryOptions rotary)
      : RotaryEmbeddingImpl(RotaryEmbeddingOptions(std::move(rotary))) {}
  /// A module with the given options.
  explicit RotaryEmbeddingImpl(RotaryEmbeddingOptions options_);
  void reset() override;
  /// A copy that remembers the same longest sequence, for rotary::Dynamic.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override;
  void pretty_print(std::ostream& stream) const override;
  std::vector<std::string> non_persistent_names() const override;
  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

  /// Returns q and k rotated; either may be undefined. `offset` is the position of the first row;
  /// `position_ids` (L), (B, L) or (planes, B, L) give explicit positions instead.
  functional::QueryKey forward(const torch::Tensor& q, const torch::Tensor& k, int64_t offset = 0,
                               const torch::Tensor& position_ids = {});

  /// forward() in place.
  ///
  /// Errors: those of functional::rotary_().
  void forward_(const torch::Tensor& q, const torch::Tensor& k, int64_t offset = 0,
                const torch::Tensor& position_ids = {});

  /// cos and sin as the system's class returns them to a layer whose hidden states are of type
  /// `dtype`; see rotary_cos_sin().
  RotaryCosSin cos_sin(const torch::Tensor& position_ids, torch::Dtype dtype = torch::kFloat);

  RotaryEmbeddingOptions options;  ///< the options given to the constructor
  torch::Tensor inv_freq;          ///< (n); undefined with Precision::Exact
  torch::Tensor alpha;             ///< (n); undefined without learned_scale

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(int64_t{0})},
                                  {3, torch::nn::AnyValue(torch::Tensor())})

 private:
  friend struct RotaryEmbeddingAccess;

  int64_t length_for(int64_t last);
  RotaryFrequencies frequencies(int64_t length, torch::Dtype dtype) const;
  RotaryCosSin computed(const torch::Tensor& position_ids, torch::Dtype dtype, int64_t length);
  RotaryCosSin computed(int64_t first, int64_t last, torch::Dtype dtype, torch::Device device,
                        int64_t length);
  bool may_cache(int64_t rows, torch::Dtype dtype, int64_t length) const;
  RotaryCosSin cached(int64_t rows, torch::Dtype dtype, torch::Device device, int64_t length);
  RotaryCosSin rows(const torch::Tensor& like, int64_t offset, const torch::Tensor& position_ids);
  RotaryCosSin rows_of(const torch::Tensor& position_ids, torch::Dtype dtype);

  detail::Opaque<RotaryEmbeddingState> state_;
};

TORCH_MODULE(RotaryEmbedding);

}  // namespace posenc
