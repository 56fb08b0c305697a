#include "cli/modules/scale_hint.h"

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

class ScaleTrials {
 public:
  ScaleTrials(const std::string& path, const Script& script, const Weights& weights,
              const std::string& module, const std::vector<std::string>& params)
      : path_(path), script_(script), weights_(weights), module_(module) {
    for (const auto& param : params) {
      if (param.rfind("scale=", 0) != 0) others_.push_back(param);
    }
  }

  bool explains(const std::string& scale) const {
    ModuleSpec spec = counterpart(scale);
    const auto outcomes = outcomes_of(path_, script_, spec);
    return !outcomes.empty() && std::all_of(outcomes.begin(), outcomes.end(),
                                            [](const Outcome& outcome) { return outcome.good; });
  }

  // The factor of the tokens that is nearest to the script's first output, rounded to float32.
  // Outputs of embeddings are linear in it: those without a scale, and those with sqrt(d_model),
  // give the tokens' part.
  std::optional<std::string> fitted() const {
    ModuleSpec plain = counterpart("none"), scaled = counterpart("sqrt_dim");
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
  ModuleSpec counterpart(const std::string& scale) const {
    std::vector<std::string> params = others_;
    params.push_back("scale=" + scale);
    return make_module_spec(weights_, module_, Params(params));
  }

  const std::string& path_;
  const Script& script_;
  const Weights& weights_;
  const std::string& module_;
  std::vector<std::string> others_;
};

}  // namespace

std::string scale_hint(const std::string& path, const Script& script, const Weights& weights,
                       const std::string& module, const std::vector<std::string>& params) {
  const ScaleTrials trials(path, script, weights, module, params);
  try {
    if (trials.explains("none"))
      return "the file's class does not multiply tokens: --param scale=none, in C++ "
             ".scale(posenc::Scale::None)";
    if (trials.explains("sqrt_dim"))
      return "the file's class multiplies tokens by sqrt(d_model): --param scale=sqrt_dim, in C++ "
             ".scale(posenc::Scale::SqrtDim)";
    const auto factor = trials.fitted();
    if (factor && trials.explains(*factor))
      return fmt::format(
          "the file's class multiplies tokens by {0}: --param scale={0}, in C++ .scale({0})",
          *factor);
  } catch (const CommandError&) {  // a class without a scale
  }
  return "";
}

}  // namespace posenc::cli
