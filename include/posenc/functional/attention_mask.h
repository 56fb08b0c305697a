#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace posenc {

/// The sizes of one attention, whose scores are (B, H, L, S): L queries, S keys.
struct AttentionShape {
  int64_t batch, heads, queries, keys;
};

/// What scaled_dot_product_attention takes.
struct ScoreMask {
  at::Tensor bias;         ///< added to the scores, (B|1, H|1, L|1, S|1); undefined for none
  bool is_causal = false;  ///< query i may attend to the keys 0 .. i; then bias is undefined
};

/// Which keys a query may attend to. SDPA, torch.nn and Hugging Face disagree on what `true` means
/// in a mask, so each way to make one says it:
/// ```cpp
/// auto mask = posenc::AttentionMask::causal() & posenc::AttentionMask::padding(ids, 0);
/// ```
/// Tensors have the shape (S), (L, S), (B, L, S), torch.nn's (B * H, L, S), or (B, H, L, S), where
/// any axis may be 1. A query that may attend to nothing gives zeros, forward and backward.
/// Errors: c10::TypeError for another dtype when the mask is made; c10::ValueError, when it is
/// used, for a shape that does not broadcast to the scores or another device.
class AttentionMask {
 public:
  /// Every query may attend to every key.
  AttentionMask() = default;

  /// bool, true = may attend: SDPA's and Hugging Face's meaning.
  static AttentionMask keep(const at::Tensor& may_attend);
  /// bool, true = may NOT attend: torch.nn's meaning.
  static AttentionMask masked(const at::Tensor& may_not_attend);
  /// Real numbers that are added to the scores; -inf = may not attend. May need a gradient.
  static AttentionMask additive(const at::Tensor& bias);
  /// Query i may attend to the keys 0 .. i + offset; offset is the number of keys before query 0.
  static AttentionMask causal(int64_t offset = 0);
  /// Keys whose id, in (B, S), is `pad` may not be attended to.
  static AttentionMask padding(const at::Tensor& ids, int64_t pad);
  /// bool (B, S), true = the key may NOT be attended to: torch.nn's `key_padding_mask`.
  static AttentionMask masked_keys(const at::Tensor& may_not_attend);
  /// A bare tensor by torch.nn's rule: bool as masked(), real numbers as additive().
  static AttentionMask from_torch_nn(const at::Tensor& mask);

  /// What both allow; biases add up.
  AttentionMask operator&(const AttentionMask& other) const;

  /// Every query may attend to every key, whatever the shape.
  bool is_none() const { return allowed_.empty() && biases_.empty() && !causal_; }

  /// The keys that may be attended to, bool (B, S), where padding() and masked_keys() are all that
  /// the mask is made of; else undefined.
  at::Tensor keys() const;

  /// All of it as one bias in `like`'s dtype and on its device.
  ScoreMask resolve(const AttentionShape& shape, const at::Tensor& like) const;

  /// The same mask, for which resolve() has nothing left to compute: a stack calls it once.
  AttentionMask resolved(const AttentionShape& shape, const at::Tensor& like) const;

 private:
  std::vector<at::Tensor> allowed_;  // bool, true = may attend
  std::vector<at::Tensor> biases_;
  std::optional<int64_t> causal_;  // the offset
};

}  // namespace posenc
