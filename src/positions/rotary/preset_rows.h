#pragma once

// What the tables of rotary presets share. Options that a row omits are those of Llama.

#include <string>
#include <vector>

#include "posenc/positions/rotary/rotary_preset.h"

namespace posenc::rotary {

inline constexpr auto f32 = Arithmetic::Float32;
inline constexpr auto kept = CosType::Float32;  ///< cos and sin are not rounded to the input's type

inline RotaryOptions halves() { return {0, Pairing::Halves}; }
inline RotaryOptions adjacent() { return {0, Pairing::Adjacent}; }
inline RotaryOptions complex() {
  return adjacent().cos_layout(CosLayout::Complex).cos_type(kept).arithmetic(Arithmetic::Complex);
}

/// The names of classes of diffusers, with its version.
inline std::vector<std::string> diffusers(std::vector<std::string> classes) {
  for (std::string& name : classes) name.insert(0, "diffusers 0.42.1 ");
  return classes;
}

std::vector<RotaryPreset> axial_presets();
std::vector<RotaryPreset> diffusers_presets();
std::vector<RotaryPreset> package_presets();

}  // namespace posenc::rotary
