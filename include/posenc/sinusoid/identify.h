#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace posenc {

/// What identify() found out about a tensor.
struct Identification {
  /// The tensor is a sinusoid: `options` rebuilds it, to the bit or to the last bits that another
  /// CPU or library rounds differently. A table that was trained is none, whatever it began as.
  bool sinusoid = false;
  /// Every preset whose operations give the tensor's bits, aliases included, rounded to its dtype;
  /// those that need the fewest parameters first. A later first position counts as a parameter,
  /// also where the preset has none (`start` in `params`).
  std::vector<std::string> presets;
  /// The preset that comes nearest; the first of `presets` where there are any; "" for a tensor
  /// that is near to none.
  std::string nearest;
  /// The largest distance to `options`: absolute, and in steps of the tensor's dtype. The latter
  /// says little where a value crosses zero.
  double max_abs = 0.0;
  int64_t max_ulp = 0;
  /// Parameters of `nearest`; besides the preset's own, whatever `options` changes in it.
  std::map<std::string, std::string> params;
  /// One sentence: equal bits, bits of another CPU, layout swapped, learned, not a sinusoid.
  std::string verdict;
  /// C++ that rebuilds it, as in `posenc::preset("detr_2d", 256, {{"height", 14}, ...})`.
  std::string options;
  int64_t length = 0;        ///< nominal length to give to sinusoid_table()
  std::string shape;         ///< how the tensor's shape was read, such as `(1, D, H, W)`
  int64_t leading_rows = 0;  ///< rows in front that do not belong to it, such as a learned token
};

/// Which recipe, with which parameters, made `tensor`.
///
/// Any floating-point dtype on any device; shapes (L, D), (D, L), grids (H, W, D) and (D, H, W),
/// boxes with one axis more, with axes of size 1 anywhere and a batch of equal tables. Fewer than
/// 3 rows or 4 channels are too small to tell. Everything that is no sinusoid is answered, not
/// thrown: random, learned and rotary tensors, masks, other dtypes, NaN. Most of them are told by
/// some thousand of their elements.
/// Throws c10::ValueError for an undefined tensor.
Identification identify(const at::Tensor& tensor);

/// The same for a tensor that a checkpoint holds as `name`, such as `h.0.attn.embed_positions`.
///
/// A rotary cache that keeps sines and cosines in one tensor (GPT-J, CodeGen) has the very numbers
/// of an additive table. Its place tells: inside an attention module, or below a name with `rotary`
/// or `rope`, where no additive table stands. Such a one is no sinusoid here; `nearest`, `options`
/// and the verdict say whose numbers it has.
Identification identify(const at::Tensor& tensor, const std::string& name);

}  // namespace posenc
