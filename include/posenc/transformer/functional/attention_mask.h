#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/export.h"

namespace posenc {
struct AttentionMaskAccess;  // private
}

namespace posenc POSENC_EXPORT {

/// The sizes of attention scores (B, H, L, S).
struct AttentionShape {
  int64_t batch;    ///< B, sequences
  int64_t heads;    ///< H
  int64_t queries;  ///< L
  int64_t keys;     ///< S
};

/// Which keys each query may attend to. SDPA, torch.nn and Hugging Face disagree on the meaning of
/// `true` in a mask and on its axes, so masks are made by named functions that fix both, and
/// combined with `&`:
/// ```cpp
/// auto mask = posenc::AttentionMask::causal() & posenc::AttentionMask::padding(ids, 0);
/// ```
/// Masks over keys are (B, S), without broadcasting. Masks over queries and keys are (B, L, S),
/// (B, H, L, S) or torch.nn's (B * H, L, S); the makers whose names end in `_pairs` take (L, S).
/// Any axis of these may be 1. A mask (H, L, S) is not recognised: give it a batch axis by
/// unsqueeze(0). A query that may not attend to any key gives zeros, forward and backward.
///
/// Errors: the makers throw c10::TypeError for a wrong dtype and c10::ValueError for a wrong rank;
/// using the mask throws c10::ValueError for sizes that do not match the scores and for a mask on
/// another device.
class AttentionMask {
 public:
  /// Every query may attend to every key.
  AttentionMask() = default;

  /// Padding from a bool or integer mask (B, S), where nonzero is a token and 0 is padding: Hugging
  /// Face's `attention_mask` and PaddedBatch::mask of pad_sequences(). The mask may share memory
  /// with the tensors that it was made from: do not write to them while it is in use.
  static AttentionMask key_padding(const at::Tensor& is_token);
  /// Padding from a bool mask (B, S), where true is padding: torch.nn's `key_padding_mask`.
  static AttentionMask key_padding_torch_nn(const at::Tensor& is_padding);
  /// Padding from token ids (B, S): keys whose id is `pad` are masked.
  static AttentionMask padding(const at::Tensor& ids, int64_t pad);

  /// Query i may attend to keys 0 .. i + offset, where offset is the number of keys before query 0.
  static AttentionMask causal(int64_t offset = 0);
  /// Query i may attend to keys i - width .. i + width, both included. `width` must not be
  /// negative.
  static AttentionMask window(int64_t width);
  /// Swin's windows of a grid of height * width tokens, row by row: queries attend to the keys of
  /// their own window of `window` x `window` tokens. With a shift, the grid is rolled by that many
  /// rows and columns before it is divided, and tokens of one window that were no neighbours before
  /// get -100 added to their scores, and not -inf: shifted_window_mask(). It is of all tokens of
  /// the grid, so that queries and keys must be height * width, and after() refuses it; it
  /// combines with all other masks.
  ///
  /// Errors: those of shifted_window_mask(), and c10::ValueError for a shift that is negative.
  static AttentionMask window(int64_t height, int64_t width, int64_t window, int64_t shift = 0);

  /// A bool mask (B, L, S) or (B, H, L, S), where true means may attend, as in SDPA.
  static AttentionMask allowed(const at::Tensor& may_attend);
  /// A bool mask (L, S) for all sequences and heads, where true means may attend.
  static AttentionMask allowed_pairs(const at::Tensor& may_attend);
  /// A bool mask (B, L, S) or (B, H, L, S), where true means may NOT attend, as in torch.nn.
  static AttentionMask blocked(const at::Tensor& may_not_attend);
  /// A bool mask (L, S) for all sequences and heads, where true means may NOT attend.
  static AttentionMask blocked_pairs(const at::Tensor& may_not_attend);
  /// A floating-point bias (B, L, S) or (B, H, L, S) that is added to the scores; -inf masks a key.
  /// It may require a gradient. A float32 bias is not rounded to the dtype of half-precision
  /// queries on the CPU; on other devices it is, once.
  static AttentionMask additive(const at::Tensor& bias);
  /// A floating-point bias (L, S) that is added to the scores of all sequences and heads.
  static AttentionMask additive_pairs(const at::Tensor& bias);
  /// ALiBi: subtracts slopes(h) * |i - j| from the score of query i and key j in head h. In a
  /// causal model that is what BLOOM, MPT and Falcon add, which the softmax does not change by a
  /// number of each query. slopes: (H), real, as alibi_slopes() makes them; they may require a
  /// gradient.
  static AttentionMask slopes(const at::Tensor& slopes);
  /// torch.nn's `attn_mask`, (L, S) or (B * H, L, S) only: bool as in blocked(), floating-point as
  /// in additive().
  static AttentionMask attn_mask_torch_nn(const at::Tensor& mask);

  /// Both masks combined: a key must be allowed by both, and biases are added. What a bias has for
  /// a key that a boolean mask excludes does not count, as in the `sdpa` attention of transformers:
  /// it may be NaN.
  AttentionMask operator&(const AttentionMask& other) const;

  /// Whether every query may attend to every key, for any shape.
  bool is_none() const {
    return keys_.empty() && allowed_.empty() && biases_.empty() && slopes_.empty() &&
           windows_.empty() && !causal_ && !first_;
  }

  /// Returns the keys that key_padding(), key_padding_torch_nn() and padding() leave, bool (B, S),
  /// whatever else the mask consists of, also of a resolved() mask; undefined without any of these.
  at::Tensor padding_keys() const;

  /// Returns the mask for queries that come after `tokens` others, all of them among the keys: a
  /// causal(), window() or slopes() part is moved by them.
  ///
  /// Errors: c10::ValueError for windows of a grid, unless there are no others.
  AttentionMask after(int64_t tokens) const;

  /// Returns an equivalent mask that consists of one bias on the device of `like`, for reuse by all
  /// layers of a stack. It has the dtype of `like`; on the CPU, float32 biases and sums of biases
  /// stay float32 beside a half-precision `like`, as in SDPA.
  AttentionMask resolved(const AttentionShape& shape, const at::Tensor& like) const;

 private:
  friend struct AttentionMaskAccess;

  // Over queries and keys, (..., L, S).
  struct Pairs {
    at::Tensor mask;
    bool of_heads = false;    // three axes are (B * H, L, S), never (B, L, S)
    at::Tensor allowed = {};  // of a resolved() bias: ScoreMask::allowed
  };

  // ALiBi's slopes (H), and the number of keys before query 0.
  struct Slopes {
    at::Tensor slopes;
    int64_t offset = 0;
  };

  // Windows of a grid, which may be shifted.
  struct GridWindows {
    int64_t height, width, window, shift;
  };

  std::vector<at::Tensor> keys_;  // bool (B, S), true = a real token
  at::Tensor padding_;            // the same, of keys that other parts exclude, or do not
  std::vector<Pairs> allowed_;    // bool, true = may attend
  std::vector<Pairs> biases_;     // real
  std::vector<Slopes> slopes_;
  std::vector<GridWindows> windows_;
  std::optional<int64_t> causal_;  // query i may attend to keys up to i + causal_
  std::optional<int64_t> first_;   // and from i + first_ on
};

}  // namespace posenc
