#pragma once

#include <string>
#include <vector>

#include "positions/sinusoid/presets/parameter.h"

namespace posenc::recipes {

// Formulas of several recipes, at dim 0.

/// Pairs numbered i = 0 ... n - 1, sines before cosines.
inline Options halves() {
  return Options(0)
      .index(sinusoid::Index::Half)
      .divisor(sinusoid::Divisor::Pairs)
      .layout(sinusoid::Layout::Halves);
}

/// 1 / b ** (i / D), i = 0, 2, 4 ...
inline Options reciprocal() { return Options(0).frequency(sinusoid::Frequency::PowerReciprocal); }

/// 1 / b ** (i / n), halves
inline Options half_index() { return halves().frequency(sinusoid::Frequency::PowerReciprocal); }

/// p / b ** (i / D)
inline Options quotient() {
  return Options(0).frequency(sinusoid::Frequency::Power).phase(sinusoid::Phase::Quotient);
}

/// 1 / b ** (i / D) of axes whose widths are rounded up to even ones
inline Options even_axes() {
  return reciprocal()
      .axis_channels(sinusoid::AxisChannels::CeilEven)
      .odd_dim(sinusoid::OddDim::Truncate);
}

/// A formula whose bits differ from those of all others.
struct Recipe {
  std::string name;
  Options options;  ///< at dim 0
  Parameters parameters = {};
  void (*derive)(Options& options) = nullptr;  ///< called last: needs dim or grid; null: nothing
  std::string bound = {};                      ///< that of Preset
};

/// A class of a real system that computes the recipe's table; a preset.
struct System {
  const char *name, *source, *storage;
  std::vector<const char*> also = {};  ///< classes of transformers, as "model: class"
  const char* former_name = "";
};

struct Family {
  Recipe recipe;
  std::vector<System> systems;
};

/// One axis; grids and points; one axis in TensorFlow.
std::vector<Family> line_recipes();
std::vector<Family> grid_recipes();
std::vector<Family> tensorflow_recipes();

/// All of them, in the order of presets(), which are their systems.
const std::vector<Family>& families();

/// The options of a preset, which are not validated. Throws c10::ValueError for a parameter that
/// the preset does not have, lacks, or that is ill-typed.
Options make_options(const Preset& preset, int64_t dim, const PresetParams& params);

}  // namespace posenc::recipes
