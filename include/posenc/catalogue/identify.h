#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The result of identify().
struct Identification {
  /// Whether the tensor is a sinusoid, so that `options` reproduces it: bit by bit, or up to the
  /// last bits, which another CPU or library rounds differently. False for a table that was trained
  /// from a sinusoid.
  bool sinusoid = false;
  /// All presets, aliases included, that reproduce the tensor bit by bit in its dtype, those with
  /// the fewest parameters first. A first position other than the preset's counts as a parameter
  /// (`start` in `params`), even if the preset has none of that name.
  std::vector<std::string> presets;
  /// The closest preset: the first of `presets` if there are any. Empty if none is close.
  std::string nearest;
  /// The largest absolute difference from `options`.
  double max_abs = 0.0;
  /// The largest difference from `options` in units in the last place of the tensor's dtype. It
  /// means little for values near zero.
  int64_t max_ulp = 0;
  /// The parameters of `nearest`, and the options that differ from that preset's.
  std::map<std::string, std::string> params;
  /// One sentence: bit-identical, rounded by another CPU, swapped layout, learned, not a sinusoid.
  std::string verdict;
  /// C++ that reproduces the tensor: `posenc::preset("detr_2d", 256, {{"height", 14}, ...})`.
  std::string options;
  int64_t length = 0;        ///< the nominal length to pass to sinusoid_table()
  std::string shape;         ///< how the tensor's shape was interpreted, such as `(1, D, H, W)`
  int64_t leading_rows = 0;  ///< rows before the table, such as a learned class token
};

/// Finds the recipe and the parameters that produced `tensor`.
///
/// tensor: any floating-point dtype on any device; (L, D), (D, L), grids (H, W, D) and (D, H, W),
/// volumes with one more axis, with axes of size 1 anywhere, and batches of equal tables. At least
/// 3 rows and 4 channels are needed. Tensors that are not sinusoids give a result, not an error:
/// random, learned and rotary ones, masks, other dtypes, NaN. Most of these are recognised from a
/// few thousand elements.
///
/// Errors: c10::ValueError for an undefined tensor.
Identification identify(const at::Tensor& tensor);

/// identify() for a tensor with the name that it has in a checkpoint, such as
/// `h.0.attn.embed_positions`.
///
/// A rotary cache with sines and cosines in one tensor (GPT-J, CodeGen) has the same values as an
/// additive table. It is recognised by its name: inside an attention module, or below a name with
/// `rotary` or `rope`, where additive tables do not occur. Such a tensor is reported as not a
/// sinusoid; `nearest`, `options` and `verdict` say which table has its values.
Identification identify(const at::Tensor& tensor, const std::string& name);

}  // namespace posenc
