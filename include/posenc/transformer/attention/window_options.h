#pragma once

#include <torch/arg.h>

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/relative/window.h"

namespace posenc POSENC_EXPORT {

/// What the scores of a window have of the places of its tokens.
enum class WindowPositions {
  None,        ///< nothing
  Table,       ///< an entry of a table for each difference of rows and columns: Swin
  Continuous,  ///< the same of a table that a small network computes, in a cosine attention: Swin
               ///< v2
  Axes,        ///< products of the queries with a table for each axis: SAM
};

/// The windows of a WindowEncoderLayer.
struct WindowOptions {
  /// Swin's windows of this size.
  explicit WindowOptions(relative::Grid window) : window_(window) {}

  /// By how many rows and columns a map of this size is rolled. Throws c10::ValueError, with
  /// needs_room, for one that is smaller than the window.
  int64_t shift_of(relative::Grid map) const;

  /// Rows and columns of a window. A map that it does not divide gets zeros below and on the right.
  TORCH_ARG(relative::Grid, window);
  /// By how many rows and columns the map is rolled before it is divided, in [0, the shorter side
  /// of the window). Tokens that were no neighbours before get -100 added to their scores.
  TORCH_ARG(int64_t, shift) = 0;
  /// What the scores have of the places of tokens.
  TORCH_ARG(WindowPositions, positions) = WindowPositions::Table;
  /// With WindowPositions::Continuous, the window that coordinates are scaled by; `window` unless
  /// set.
  TORCH_ARG(relative::Grid, pretrained_window) = {};
  /// Whether a map of which a side is no longer than the window is not shifted, and a smaller one
  /// is an error, as in Swin, whose table would not fit it; otherwise it gets zeros as well.
  TORCH_ARG(bool, needs_room) = true;
  /// Normalises the output of each block before it is added to x, in place of its input: Swin v2.
  TORCH_ARG(bool, res_post_norm) = false;
  /// Whether the dropout of a path is of the attention alone, as in transformers' Swin.
  TORCH_ARG(bool, path_of_attention) = false;

  POSENC_FIELDS(WindowOptions, window_, shift_, positions_, pretrained_window_, needs_room_,
                res_post_norm_);
  POSENC_TRAINING_FIELDS(path_of_attention_);
};

}  // namespace posenc
