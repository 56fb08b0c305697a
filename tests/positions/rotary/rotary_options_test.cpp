// Every option counts for equality: modules with equal options share their tables.

#include "posenc/positions/rotary/rotary_options.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace posenc {
namespace {

using Change = std::function<void(RotaryOptions&)>;

std::vector<Change> changes_of_scaling() {
  std::vector<Change> all;
  const auto add = [&](const rotary::Scaling& scaling) {
    all.emplace_back([scaling](RotaryOptions& o) { o.scaling(scaling); });
  };
  for (const double two : {1.0, 2.0}) {
    add(rotary::Linear{two + 1});
    add(rotary::Proportional{two, 1.0});
    add(rotary::Dynamic{two, 8});
    add(rotary::NtkAlpha{two});
    add(rotary::Yarn{two, 8.0});
    add(rotary::LongRope{{two}, {1.0}, 8.0});
    add(rotary::PhiMoe{{two}, 8.0});
    add(rotary::Llama3{two});
  }
  add(rotary::Proportional{1.0, 2.0});
  add(rotary::Dynamic{1.0, 9});
  add(rotary::Yarn{1.0, 9.0});
  add(rotary::Yarn{1.0, 8.0, 31.0});
  add(rotary::Yarn{1.0, 8.0, 32.0, 2.0});
  add(rotary::Yarn{1.0, 8.0, 32.0, 1.0, false});
  add(rotary::Yarn{1.0, 8.0, 32.0, 1.0, true, 1.0});
  add(rotary::Yarn{1.0, 8.0, 32.0, 1.0, true, {}, 1.0});
  add(rotary::Yarn{1.0, 8.0, 32.0, 1.0, true, {}, 0.0, 1.0});
  add(rotary::LongRope{{1.0}, {2.0}, 8.0});
  add(rotary::LongRope{{1.0}, {1.0}, 9.0});
  add(rotary::LongRope{{1.0}, {1.0}, 8.0, 2.0});
  add(rotary::LongRope{{1.0}, {1.0}, 8.0, 1.0, 1.0});
  add(rotary::PhiMoe{{1.0}, 9.0});
  add(rotary::PhiMoe{{1.0}, 8.0, 2.0});
  add(rotary::PhiMoe{{1.0}, 8.0, 1.0, 2.0});
  add(rotary::Llama3{1.0, 2.0});
  add(rotary::Llama3{1.0, 1.0, 5.0});
  add(rotary::Llama3{1.0, 1.0, 4.0, 1.0});
  return all;
}

std::vector<Change> changes_of_grid() {
  std::vector<Change> all;
  const auto add = [&](const rotary::Grid& grid) {
    all.emplace_back([grid](RotaryOptions& o) { o.grid(grid); });
  };
  add({.coordinates = rotary::Coordinates::OneBased});
  add({.width_first = true});
  add({.zero_tokens = 1});
  add({.reference = {2, 3}});
  add({.offset = 0.5});
  add({.merge = 2});
  add({.learned_prefix = true});
  return all;
}

// One for each option in the header, without scaling and grid.
std::vector<Change> changes() {
  using O = RotaryOptions;
  return {
      [](O& o) { o.dim(10); },
      [](O& o) { o.pairing(rotary::Pairing::Adjacent); },
      [](O& o) { o.base(2.0); },
      [](O& o) { o.frequency(rotary::Frequency::PowerDivisor); },
      [](O& o) { o.angle_type(rotary::AngleType::Float64); },
      [](O& o) { o.precision(Precision::Exact); },
      [](O& o) { o.planes(rotary::Planes::Axial); },
      [](O& o) { o.sections({1, 1, 2}); },
      [](O& o) { o.axes(3); },
      [](O& o) { o.axis_dims({4, 4}); },
      [](O& o) { o.axis_bases({1.0, 2.0}); },
      [](O& o) { o.axis_divisors({1.0, 2.0}); },
      [](O& o) { o.last_plane_first(true); },
      [](O& o) { o.rest_first(true); },
      [](O& o) { o.position_scale(2.0); },
      [](O& o) { o.angle_divisor(2.0); },
      [](O& o) { o.modulated(true); },
      [](O& o) { o.cos_layout(rotary::CosLayout::Pairs); },
      [](O& o) { o.cos_type(rotary::CosType::Float32); },
      [](O& o) { o.arithmetic(rotary::Arithmetic::Float32); },
      [](O& o) { o.part(rotary::Part::First); },
      [](O& o) { o.rotary_heads(1); },
      [](O& o) { o.applied_to(rotary::AppliedTo::HiddenStates); },
      [](O& o) { o.joined_heads(2); },
      [](O& o) { o.rotary_value(true); },
      [](O& o) { o.xpos_scale_base(512.0); },
      [](O& o) { o.xpos_middle(0); },
      [](O& o) { o.reversed(true); },
      [](O& o) { o.head_axis(rotary::HeadAxis::AfterLength); },
  };
}

TEST(RotaryOptions, AreEqualInAllOrNot) {
  std::vector<RotaryOptions> all = {{8, rotary::Pairing::Halves}};
  for (const auto& some : {changes(), changes_of_scaling(), changes_of_grid()}) {
    for (const Change& change : some) {
      all.emplace_back(8, rotary::Pairing::Halves);
      change(all.back());
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const RotaryOptions copy = all[i];
    for (std::size_t j = 0; j < all.size(); ++j) EXPECT_EQ(copy == all[j], i == j) << i << " " << j;
    EXPECT_FALSE(copy != all[i]);
  }
}

TEST(RotaryOptions, OfTheHeaderAreAllCompared) {
  std::ifstream header(POSENC_SOURCE_DIR "/include/posenc/positions/rotary/rotary_options.h");
  std::size_t count = 0;
  for (std::string line; std::getline(header, line);)
    count += line.find("TORCH_ARG(") == std::string::npos ? 0 : 1;
  EXPECT_EQ(count, changes().size() + 2) << "with scaling and grid";
}

}  // namespace
}  // namespace posenc
