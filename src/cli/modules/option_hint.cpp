#include "cli/modules/option_hint.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/error.h"
#include "cli/modules/comparison.h"
#include "cli/modules/module_spec.h"
#include "cli/modules/probes.h"

namespace posenc::cli {
namespace {

class Trials {
 public:
  Trials(const std::string& path, const Script& script, const Weights& weights,
         const std::string& module, const std::vector<std::string>& params)
      : path_(path), script_(script), weights_(weights), module_(module), params_(params) {}

  // Whether the outputs are equal with other values of these parameters.
  bool explains(const std::vector<std::string>& changed) const {
    try {
      ModuleSpec spec = counterpart(changed);
      const auto outcomes = outcomes_of(path_, script_, spec);
      return !outcomes.empty() && std::all_of(outcomes.begin(), outcomes.end(),
                                              [](const Outcome& outcome) { return outcome.good; });
    } catch (const CommandError&) {  // a class without one of them
      return false;
    }
  }

  // The factor of the tokens that is nearest to the script's first output, rounded to float32.
  // Outputs of embeddings are linear in it: those without a scale, and those with sqrt(d_model),
  // give the tokens' part.
  std::optional<std::string> fitted() const {
    ModuleSpec plain = counterpart({"scale=none"}), scaled = counterpart({"scale=sqrt_dim"});
    if (plain.input != Input::Ids) return std::nullopt;
    const Call call = probes(plain, {}).front().call;
    const at::Tensor theirs = script_.call("forward", {call.at("input")}).to(at::kDouble);
    const at::Tensor unscaled = plain.forward(call).to(at::kDouble);
    if (theirs.sizes() != unscaled.sizes()) return std::nullopt;
    const at::Tensor grown = scaled.forward(call).to(at::kDouble) - unscaled;
    const double step = std::sqrt(static_cast<double>(plain.sizes.at("d_model"))) - 1;
    const double along = ((theirs - unscaled) * grown).sum().item<double>();
    const auto factor = static_cast<float>(1 + step * along / (grown * grown).sum().item<double>());
    if (!std::isfinite(factor)) return std::nullopt;
    return fmt::format("{}", factor);
  }

 private:
  ModuleSpec counterpart(const std::vector<std::string>& changed) const {
    std::vector<std::string> params = changed;
    for (const auto& param : params_) {
      const std::string name = param.substr(0, param.find('=') + 1);
      const bool is_kept = std::none_of(changed.begin(), changed.end(), [&](const auto& other) {
        return other.rfind(name, 0) == 0;
      });
      if (is_kept) params.push_back(param);
    }
    return make_module_spec(weights_, module_, Params(params));
  }

  const std::string& path_;
  const Script& script_;
  const Weights& weights_;
  const std::string& module_;
  const std::vector<std::string>& params_;
};

struct Explanation {
  std::vector<std::string> params;
  const char* text;
};

// torch.nn's defaults are batch_first false and norm_first false.
const Explanation kExplanations[] = {
    {{"batch_first=false"},
     "the file's class takes (L, B, D): --param batch_first=false, in C++ .batch_first(false)"},
    {{"norm_first=1"},
     "the file's class normalises before each sublayer: --param norm_first=1, in C++ "
     ".norm_first(true)"},
    {{"batch_first=false", "norm_first=1"},
     "the file's class takes (L, B, D) and normalises before each sublayer: --param "
     "batch_first=false --param norm_first=1"},
    {{"scale=none"},
     "the file's class does not multiply tokens: --param scale=none, in C++ "
     ".scale(posenc::Scale::None)"},
    {{"scale=sqrt_dim"},
     "the file's class multiplies tokens by sqrt(d_model): --param scale=sqrt_dim, in C++ "
     ".scale(posenc::Scale::SqrtDim)"},
};

}  // namespace

std::string option_hint(const std::string& path, const Script& script, const Weights& weights,
                        const std::string& module, const std::vector<std::string>& params) {
  const Trials trials(path, script, weights, module, params);
  for (const Explanation& one : kExplanations) {
    if (trials.explains(one.params)) return one.text;
  }
  try {
    const auto factor = trials.fitted();
    if (!factor || !trials.explains({"scale=" + *factor})) return "";
    return fmt::format(
        "the file's class multiplies tokens by {0}: --param scale={0}, in C++ .scale({0})",
        *factor);
  } catch (const CommandError&) {  // a class without a scale
    return "";
  }
}

}  // namespace posenc::cli
