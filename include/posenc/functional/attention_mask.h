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
/// in a mask and on what its two axes are, so each way to make one says both:
/// ```cpp
/// auto mask = posenc::AttentionMask::causal() & posenc::AttentionMask::padding(ids, 0);
/// ```
/// Masks over keys are (B, S), exactly. Masks over queries and keys are (B, L, S), torch.nn's
/// (B * H, L, S) or (B, H, L, S), and (L, S) by the makers that end in `_pairs`; any of their axes
/// may be 1. Three axes never begin with the heads alone, as they do where (H, L, S) broadcasts:
/// such a mask needs its batch axis, unsqueeze(0). A query that may attend to nothing gives zeros,
/// forward and backward.
/// Errors: c10::TypeError for another dtype and c10::ValueError for another rank when the mask is
/// made; c10::ValueError, when it is used, for sizes that do not fit the scores and for another
/// device.
class AttentionMask {
 public:
  /// Every query may attend to every key.
  AttentionMask() = default;

  /// bool or integer (B, S), not 0 = a real token, 0 = padding: Hugging Face's `attention_mask`,
  /// pad_sequences()' PaddedBatch::mask.
  static AttentionMask key_padding(const at::Tensor& is_token);
  /// bool (B, S), true = padding: torch.nn's `key_padding_mask`.
  static AttentionMask key_padding_torch_nn(const at::Tensor& is_padding);
  /// Keys whose id, in (B, S), is `pad` may not be attended to.
  static AttentionMask padding(const at::Tensor& ids, int64_t pad);

  /// Query i may attend to the keys 0 .. i + offset; offset is the number of keys before query 0.
  static AttentionMask causal(int64_t offset = 0);

  /// bool (B, L, S) or (B, H, L, S), true = may attend: SDPA's meaning.
  static AttentionMask allowed(const at::Tensor& may_attend);
  /// bool (L, S), true = may attend, for every sequence and head.
  static AttentionMask allowed_pairs(const at::Tensor& may_attend);
  /// bool (B, L, S) or (B, H, L, S), true = may NOT attend: torch.nn's meaning.
  static AttentionMask blocked(const at::Tensor& may_not_attend);
  /// bool (L, S), true = may NOT attend, for every sequence and head.
  static AttentionMask blocked_pairs(const at::Tensor& may_not_attend);
  /// Real (B, L, S) or (B, H, L, S), added to the scores; -inf = may not attend. May need a
  /// gradient.
  static AttentionMask additive(const at::Tensor& bias);
  /// Real (L, S), added to the scores of every sequence and head.
  static AttentionMask additive_pairs(const at::Tensor& bias);
  /// torch.nn's `attn_mask`: (L, S) or (B * H, L, S), and nothing else, as there; bool as
  /// blocked(), real as additive().
  static AttentionMask attn_mask_torch_nn(const at::Tensor& mask);

  /// What both allow; biases add up.
  AttentionMask operator&(const AttentionMask& other) const;

  /// Every query may attend to every key, whatever the shape.
  bool is_none() const { return keys_.empty() && allowed_.empty() && biases_.empty() && !causal_; }

  /// The keys that may be attended to, bool (B, S), where key_padding(), key_padding_torch_nn() and
  /// padding() are all that the mask is made of; else undefined.
  at::Tensor keys() const;

  /// The mask of the queries first, first + 1, ... alone, `count` of them: what a decoder needs
  /// that runs a few queries at a time. c10::ValueError for queries that a tensor in it does not
  /// have.
  AttentionMask queries(int64_t first, int64_t count) const;

  /// All of it as one bias in `like`'s dtype and on its device.
  ScoreMask resolve(const AttentionShape& shape, const at::Tensor& like) const;

  /// The same mask, for which resolve() has nothing left to compute: a stack calls it once.
  AttentionMask resolved(const AttentionShape& shape, const at::Tensor& like) const;

 private:
  /// Over queries and keys, (..., L, S).
  struct Pairs {
    at::Tensor mask;
    bool of_heads = false;  // three axes are (B * H, L, S), never (B, L, S)
  };

  std::vector<at::Tensor> keys_;   // bool (B, S), true = a real token
  std::vector<Pairs> allowed_;     // bool, true = may attend
  std::vector<Pairs> biases_;      // real
  std::optional<int64_t> causal_;  // the offset
};

}  // namespace posenc
