#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "posenc/catalogue/relative_preset.h"
#include "posenc/positions/relative/window.h"

namespace posenc::relative {

/// A tensor's size that may be any.
constexpr int64_t kAny = -1;

/// The settings and tensors of one call of a preset, looked up by name. Errors name the preset, the
/// setting or tensor, and the rule: c10::ValueError, and c10::TypeError for another dtype.
class Given {
 public:
  /// Throws for settings without a dtype(), which a preset without tensors has too.
  Given(std::string_view preset, const RelativeInputs& inputs) : preset_(preset), inputs_(inputs) {
    dtype();
  }

  bool flag(const char* name) const;
  /// An integer that is at least `least`.
  int64_t integer(const char* name, int64_t least = 0) const;
  double real(const char* name) const;
  std::string text(const char* name) const;
  /// Whether the list of words has this one.
  bool lists(const char* name, std::string_view word) const;
  /// How many words the list has.
  int64_t words(const char* name) const;
  /// Height and width: a list of two integers, or one for both; each is at least `least`.
  Grid grid(const char* name, int64_t least = 1) const;
  /// The dtype of the settings: float32, bfloat16 or float16.
  at::ScalarType dtype() const;

  bool has(const char* name) const { return inputs_.tensors.contains(name); }
  /// The tensor, which must have these sizes; kAny: any.
  at::Tensor tensor(const char* name, at::IntArrayRef sizes) const;
  /// The tensor with any sizes, of this rank.
  at::Tensor of_rank(const char* name, int64_t rank) const;
  /// The tensor whose sizes are those of the scores or 1.
  at::Tensor added(const char* name, at::IntArrayRef scores) const;
  /// The tensor with these sizes, integers or bool.
  at::Tensor integers(const char* name, at::IntArrayRef sizes) const;

  /// Throws c10::TypeError unless the tensor called `name` has the dtype of the settings.
  void require_dtype(const char* name, const at::Tensor& given) const;
  /// Throws c10::ValueError `[preset] what must rule. Got value` unless `kept`.
  void require(bool kept, const std::string& what, const std::string& got) const;

 private:
  const RelativeSetting& setting(const char* name) const;
  [[noreturn]] void wrong(const char* name, const char* what) const;

  std::string preset_;
  const RelativeInputs& inputs_;
};

/// q (B, H, Q, D) and k (B, H, K, D).
struct QueriesAndKeys {
  at::Tensor q;                                   ///< the queries
  at::Tensor k;                                   ///< the keys
  int64_t batch, heads, queries, keys, head_dim;  ///< their sizes
};
QueriesAndKeys queries_and_keys(const Given& given);
/// What a fused projection puts together: all heads of the queries, keys and values, (B, L, 3, H,
/// D), or those of each head, (B, L, H, 3, D).
enum class Fused { Parts, Heads };
/// The same for queries and keys of one length, in the memory order of such a projection's output.
QueriesAndKeys fused_queries_and_keys(const Given& given, Fused fused);

/// The mask of the settings' `masked`, whose axes are those of the scores or 1; undefined where it
/// is false.
at::Tensor mask_if_masked(const Given& given, const QueriesAndKeys& input);

}  // namespace posenc::relative
