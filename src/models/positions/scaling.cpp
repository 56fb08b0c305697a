#include "models/positions/scaling.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/nearest.h"

namespace posenc {
namespace {

using Maker = rotary::Scaling (*)(const RopeSettings&);

// A key whose value is null or 0 gets the fallback, as with Python's `or`.
double truthy(const Settings& s, const char* name, double fallback) {
  const double number = s.real_if(name).value_or(0.0);
  return number != 0.0 ? number : fallback;
}

double original_of(const RopeSettings& s) {
  return s.parameters.required("original_max_position_embeddings", "rope_type " + s.rope_type());
}

// The factor, or if it is null the ratio of the two lengths.
double factor_or_ratio(const RopeSettings& s) {
  const auto factor = s.parameters.real_if("factor");
  return factor ? *factor : static_cast<double>(s.max_position) / original_of(s);
}

std::vector<double> factors(const RopeSettings& s, const char* name) {
  const auto numbers = s.parameters.reals_if(name);
  if (!numbers)
    s.parameters.refuse(name, "must be a list of numbers for rope_type " + s.rope_type());
  return *numbers;
}

rotary::Scaling by_default(const RopeSettings&) { return rotary::Default{}; }

rotary::Scaling linear(const RopeSettings& s) {
  return rotary::Linear{s.parameters.required("factor", "rope_type linear")};
}

rotary::Scaling proportional(const RopeSettings& s) {
  return rotary::Proportional{s.parameters.real_if("partial_rotary_factor").value_or(1.0),
                              s.parameters.real_if("factor").value_or(1.0)};
}

rotary::Scaling dynamic(const RopeSettings& s) {
  const std::string_view preset = s.model.rotary;
  const double alpha = s.parameters.real_if("alpha").value_or(0.0);
  if (alpha != 0.0 && (preset == "hunyuan_v1" || preset == "hunyuan_vl")) {
    return rotary::NtkAlpha{alpha};
  }
  return rotary::Dynamic{s.parameters.required("factor", "rope_type dynamic"), s.max_position};
}

rotary::Scaling yarn(const RopeSettings& s) {
  if (!s.parameters.mentions("factor")) s.parameters.required("factor", "rope_type yarn");
  rotary::Yarn result;
  result.original_max_position = original_of(s);
  result.factor = factor_or_ratio(s);
  result.beta_fast = truthy(s.parameters, "beta_fast", result.beta_fast);
  result.beta_slow = truthy(s.parameters, "beta_slow", result.beta_slow);
  // Null counts as false: transformers checks that the key exists, and then its truth value.
  result.truncate = s.top.flag_if("truncate").value_or(!s.top.mentions("truncate"));
  result.attention_factor = s.parameters.real_if("attention_factor");
  result.mscale = s.parameters.real_if("mscale").value_or(0.0);
  result.mscale_all_dim = s.parameters.real_if("mscale_all_dim").value_or(0.0);
  return result;
}

rotary::Scaling longrope(const RopeSettings& s) {
  if (s.model.rotary == std::string_view("phimoe")) {
    rotary::PhiMoe result;
    result.short_factor = factors(s, "short_factor");
    result.original_max_position = original_of(s);
    result.short_mscale = s.parameters.required("short_mscale", "rope_type longrope");
    result.long_mscale = s.parameters.required("long_mscale", "rope_type longrope");
    return result;
  }
  rotary::LongRope result;
  result.short_factor = factors(s, "short_factor");
  result.long_factor = factors(s, "long_factor");
  result.original_max_position = original_of(s);
  result.factor = factor_or_ratio(s);
  result.attention_factor = s.parameters.real_if("attention_factor");
  return result;
}

rotary::Scaling llama3(const RopeSettings& s) {
  const char* reason = "rope_type llama3";
  return rotary::Llama3{s.parameters.required("factor", reason),
                        s.parameters.required("low_freq_factor", reason),
                        s.parameters.required("high_freq_factor", reason), original_of(s)};
}

struct Known {
  const char* rope_type;
  Maker make;
};
constexpr Known kKnown[] = {
    {"default", by_default}, {"linear", linear},    {"proportional", proportional},
    {"dynamic", dynamic},    {"yarn", yarn},        {"longrope", longrope},
    {"llama3", llama3},      {"axial", by_default},
};

// Older names, which the models' configuration classes translate.
std::string translated(const std::string& name, const hf::ModelType& model) {
  if (model.rope.longrope_names && (name == "su" || name == "yarn")) return "longrope";
  if (name == "mrope") return "default";
  if (name == "xdrope" && model.rotary == std::string_view("hunyuan_vl")) return "dynamic";
  return name;
}

// `axial` is only for patches of images; the rows of their model types list it.
bool takes(std::string_view listed, std::string_view rope_type) {
  if (listed.empty()) return rope_type != "axial";
  return listed.find(rope_type) != std::string_view::npos;
}

}  // namespace

std::string RopeSettings::rope_type() const {
  const auto newer = parameters.text_if("rope_type");
  const auto older = parameters.text_if("type");
  return translated(newer ? *newer : older.value_or("default"), model);
}

rotary::Scaling scaling_of(const RopeSettings& s) {
  const std::string type = s.rope_type();
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    if (!takes(s.model.rope.scalings, known.rope_type)) continue;
    if (type == known.rope_type) return known.make(s);
    names.push_back(known.rope_type);
  }
  s.parameters.refuse(s.parameters.has("rope_type") ? "rope_type" : "type",
                      fmt::format("must be a type of scaling that `{}` knows; the nearest are {}",
                                  s.model.type, detail::nearest_text(type, names)));
}

}  // namespace posenc
