#include "parity/program/comparison.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/floating_point.h"
#include "parity/program/probes.h"

namespace posenc::parity {
namespace {

// One operation per element, or the same operations of the same shapes in the same process, have
// the same bits. torch.nn's fast path sums in another order, layer after layer: this many units in
// the last place of the output's largest number.
constexpr double kLastPlaces = 64;

bool is_good(const at::Tensor& theirs, const Difference& difference, Input input) {
  const bool in_layers = input == Input::Sentences || input == Input::Sequences;
  if (difference.equal || !in_layers || !theirs.is_floating_point()) return difference.equal;
  const double unit = epsilon_of(theirs.scalar_type()) * theirs.abs().max().item<double>();
  return difference.max_abs <= kLastPlaces * unit;
}

// `theirs` calls the script.
template <typename Theirs>
Outcome compare(const Counterpart& made, const Probe& probe, const Theirs& theirs) {
  Outcome outcome;
  outcome.name = probe.name;
  for (const auto& name : made.kind.inputs) {
    outcome.shape += (outcome.shape.empty() ? "" : " ") + shape_of(probe.call.at(name));
  }
  try {
    const at::Tensor expected = theirs(probe.call);
    outcome.difference = difference(expected, made.forward(probe.call));
    outcome.good = is_good(expected, outcome.difference, made.kind.input);
    if (!outcome.difference.why.empty()) {
      outcome.failure = "outputs of the script and of the C++ class: " + outcome.difference.why;
    }
  } catch (const std::exception& error) {
    outcome.failure = message_of(error);
  }
  return outcome;
}

// Maps the script's arguments to the counterpart's names: required ones in order, the others by the
// script's names.
std::vector<Outcome> plain_outcomes(const Script& script, const Counterpart& made) {
  const Kind& kind = made.kind;
  Names needed;
  std::map<std::string, std::string> named;
  std::set<std::string> masks;
  const auto all = script.arguments("forward");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, required] = all[i];
    const bool is_input = i < kind.inputs.size();
    const auto alias = kind.aliases.find(name);
    const std::string own = is_input                      ? kind.inputs[i]
                            : alias == kind.aliases.end() ? name
                                                          : alias->second;
    const bool is_option = std::count(kind.optional.begin(), kind.optional.end(), own) > 0;
    if (!is_input && !is_option) {
      if (!required) continue;
      fail("{}: its {} requires an argument that the C++ class does not take: {}",
           made.weights.path, script.signature("forward"), name);
    }
    if (required) {
      needed.push_back(own);
    } else {
      named[name] = own;
    }
    if (!is_input && (required || own.ends_with("mask"))) masks.insert(own);
  }
  if (needed.size() < kind.inputs.size()) {
    fail("{}: its {} must take {}", made.weights.path, script.signature("forward"),
         listed(kind.inputs));
  }
  std::vector<Outcome> result;
  for (const auto& probe : probes(made, masks)) {
    const auto has = [&](const std::string& name) { return probe.call.count(name) > 0; };
    if (!std::all_of(needed.begin(), needed.end(), has)) continue;
    result.push_back(compare(made, probe, [&](const Call& call) {
      std::vector<at::Tensor> values;
      for (const auto& name : needed) values.push_back(call.at(name));
      std::map<std::string, at::Tensor> by_name;
      for (const auto& [theirs, ours] : named) {
        if (has(ours)) by_name[theirs] = call.at(ours);
      }
      return script.call("forward", values, by_name);
    }));
  }
  return result;
}

// Passes image and timesteps in whichever order the script takes them.
void add_image_outcomes(const Script& script, const Counterpart& made, const std::string& method,
                        std::vector<Outcome>& outcomes) {
  for (const auto& probe : image_probes(made)) {
    outcomes.push_back(compare(made, probe, [&](const Call& call) {
      const at::Tensor &image = call.at("image"), &t = call.at("input");
      try {
        return script.call(method, {image, t});
      } catch (const CommandError& error) {
        try {
          return script.call(method, {t, image});
        } catch (const CommandError&) {
          throw error;
        }
      }
    }));
  }
}

struct Explanation {
  Names params;
  const char* text;
};

// torch.nn's defaults are batch_first false and norm_first false.
const Explanation kExplanations[] = {
    {{"batch_first=false"},
     "takes (L, B, D): --param batch_first=false, in C++ .batch_first(false)"},
    {{"norm_first=1"},
     "normalises before each sublayer: --param norm_first=1, in C++ .norm_first(true)"},
    {{"batch_first=false", "norm_first=1"},
     "takes (L, B, D) and normalises before each sublayer: --param batch_first=false --param "
     "norm_first=1"},
    {{"scale=none"},
     "does not multiply tokens: --param scale=none, in C++ .scale(posenc::Scale::None)"},
    {{"scale=sqrt_dim"},
     "multiplies tokens by sqrt(d_model): --param scale=sqrt_dim, in C++ "
     ".scale(posenc::Scale::SqrtDim)"},
};

// `params` in which those of `changed` have other values.
Names with(const Names& changed, const Names& params) {
  Names all = changed;
  for (const auto& param : params) {
    const std::string name = param.substr(0, param.find('=') + 1);
    const auto is_same = [&](const std::string& other) { return other.starts_with(name); };
    if (std::none_of(changed.begin(), changed.end(), is_same)) all.push_back(param);
  }
  return all;
}

// The factor of the tokens that is nearest to the script's first output, rounded to float32; NaN if
// there is none. Outputs of embeddings are linear in it: those without a scale, and those with
// sqrt(d_model), give the tokens' part.
float fitted(const Script& script, const Counterpart& plain, const Counterpart& scaled) {
  if (plain.kind.input != Input::Ids) return NAN;
  const Call call = probes(plain).front().call;
  const at::Tensor theirs = script.call("forward", {call.at("input")}).to(at::kDouble);
  const at::Tensor unscaled = plain.forward(call).to(at::kDouble);
  if (theirs.sizes() != unscaled.sizes()) return NAN;
  const at::Tensor grown = scaled.forward(call).to(at::kDouble) - unscaled;
  const double step = std::sqrt(static_cast<double>(plain.sizes.at("d_model"))) - 1;
  const double along = ((theirs - unscaled) * grown).sum().item<double>();
  return static_cast<float>(1 + step * along / (grown * grown).sum().item<double>());
}

}  // namespace

std::vector<Outcome> outcomes_of(const Script& script, const Counterpart& made) {
  std::vector<Outcome> result;
  const bool is_timesteps = made.kind.input == Input::Timesteps;
  const auto arguments = script.arguments("forward");
  const auto needed = std::count_if(arguments.begin(), arguments.end(),
                                    [](const auto& argument) { return argument.required; });
  if (is_timesteps && needed == 2) {
    add_image_outcomes(script, made, "forward", result);
    return result;
  }
  result = plain_outcomes(script, made);
  if (is_timesteps && script.has_method("add_to")) {
    add_image_outcomes(script, made, "add_to", result);
  }
  return result;
}

std::string option_hint(const Script& script, const Weights& weights, const std::string& module,
                        const Names& params) {
  const auto made_with = [&](const Names& changed) {
    return make_counterpart(weights, module, with(changed, params));
  };
  const auto explains = [&](const Names& changed) {
    try {
      Counterpart made = made_with(changed);
      const auto outcomes = outcomes_of(script, made);
      return !outcomes.empty() && std::all_of(outcomes.begin(), outcomes.end(),
                                              [](const Outcome& outcome) { return outcome.good; });
    } catch (const CommandError&) {  // a class without one of them
      return false;
    }
  };
  const std::string file_class = "the file's class ";
  for (const auto& [changed, text] : kExplanations) {
    if (explains(changed)) return file_class + text;
  }
  try {
    const float factor = fitted(script, made_with({"scale=none"}), made_with({"scale=sqrt_dim"}));
    if (!std::isfinite(factor) || !explains({fmt::format("scale={}", factor)})) return "";
    return file_class +
           fmt::format("multiplies tokens by {0}: --param scale={0}, in C++ .scale({0})", factor);
  } catch (const CommandError&) {  // a class without a scale
    return "";
  }
}

}  // namespace posenc::parity
