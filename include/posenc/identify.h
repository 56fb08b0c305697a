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

/// The result of identify_rotary().
struct RotaryIdentification {
  /// Whether the tensor belongs to a rotary embedding.
  bool rotary = false;
  /// The contents of the tensor: `inv_freq`, `cos`, `sin`, `freqs_cis` (complex, or real and
  /// imaginary part), or `cos_sin` and `sin_cos` (both in one row).
  std::string holds;
  /// The order of the n angles in a row of cos or sin: `halves`, `pairs`, `single` (n entries) or
  /// `complex`. Empty for `inv_freq`.
  std::string layout;
  /// The presets whose cos and sin have these bits with `params`; if the tensor is `inv_freq`, any
  /// preset with one position per token. Empty if the bits are not equal.
  std::vector<std::string> presets;
  std::string nearest;   ///< the preset that `params` are for
  double max_abs = 0.0;  ///< the largest absolute difference from that
  int64_t max_ulp = 0;   ///< the same in units in the last place of the tensor's dtype
  /// The parameters by their names in a config.json, with which `posenc rotary --preset` computes
  /// it: `head_dim` (the channels that rotate), `rope_theta`, `rope_type`, `factor` and so on.
  std::map<std::string, std::string> params;
  std::string verdict;  ///< one sentence, and what the tensor does not determine
  std::string options;  ///< C++: `posenc::rotary_preset("llama", 128).base(500000)`
  int64_t length = 0;   ///< positions of cos or sin, from 0 on
};

/// Finds the rotary embedding that `tensor` is a cache or the frequencies of.
///
/// tensor: cos or sin (L, W) from position 0 on, with axes of size 1 anywhere, W = D or D / 2;
/// complex (L, D / 2); cos and sin stacked (L, D / 2, 2); both side by side (L, D), or frequencies
/// (D / 2), which are recognised only by a name with `freq`, `rotary` or `rope`, since tables to be
/// added have the same values.
///
/// Which channels of q and k form a pair cannot be determined from cos and sin: systems with halves
/// and with adjacent pairs use the same ones. Nor can scalings that give the same frequencies be
/// distinguished: dynamic NTK and HunYuan's alpha are another base, and of Llama 3's three lengths
/// only the ratios matter (low_freq_factor is taken to be 1).
///
/// Errors: c10::ValueError for an undefined tensor.
RotaryIdentification identify_rotary(const at::Tensor& tensor, const std::string& name = "");

}  // namespace posenc
