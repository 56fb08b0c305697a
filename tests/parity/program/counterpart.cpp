#include "parity/program/counterpart.h"

#include <algorithm>
#include <set>

#include "cli/arguments.h"
#include "cli/text_table.h"
#include "posenc/weights/load.h"
#include "weights/load/load_all.h"

namespace posenc::parity {
namespace {

using Candidates = std::vector<const Kind*>;

template <typename Keep>
Candidates kinds_that(Keep keep) {
  Candidates kept;
  for (const Kind& kind : kinds()) {
    if (keep(kind)) kept.push_back(&kind);
  }
  return kept;
}

bool has_keys(const Kind& kind, const StateDict& tensors) {
  return std::all_of(kind.keys.begin(), kind.keys.end(),
                     [&](const Key& key) { return tensors.contains(key.name); });
}

std::string keys_of(const Candidates& candidates) {
  std::string text;
  for (const Kind* kind : candidates) {
    Names names;
    for (const Key& key : kind->keys) names.push_back("`" + key.name + "`");
    text += (text.empty() ? "" : "; or ") + listed(names);
  }
  return text;
}

// `name` is that of --module, if given, or else that of the script's class.
const Kind& find_kind(const Weights& weights, const std::string& module) {
  const std::string name = module.empty() ? weights.class_name : module;
  const auto candidates = kinds_that([&](const Kind& kind) {
    return std::find(kind.names.begin(), kind.names.end(), name) != kind.names.end();
  });
  for (const Kind* kind : candidates) {
    if (has_keys(*kind, weights.tensors)) return *kind;
  }
  if (!candidates.empty()) {
    fail("{}: {} {} must have the keys {}; the file contains {}", weights.path,
         module.empty() ? "class" : "--module", name, keys_of(candidates),
         described(weights.tensors));
  }
  auto fitting =
      kinds_that([&](const Kind& kind) { return kind.by_keys && has_keys(kind, weights.tensors); });
  const auto has_fewer = [](const Kind* a, const Kind* b) {
    return a->keys.size() < b->keys.size();
  };
  std::sort(fitting.rbegin(), fitting.rend(), has_fewer);  // a decoder has an encoder's, and more
  if (fitting.size() == 1 || (fitting.size() > 1 && has_fewer(fitting[1], fitting[0]))) {
    return *fitting[0];
  }
  fail("{}: {}, and its keys match {}: {}. Choose one with --module NAME:\n{}", weights.path,
       name.empty() ? "it has no class name" : "its class " + shown(name) + " is unknown",
       fitting.empty() ? "no class" : "several classes", described(weights.tensors),
       module_names());
}

// The sizes given by the shapes. Loading checks whether they agree.
std::map<std::string, int64_t> sizes_of(const Kind& kind, const Weights& weights) {
  std::map<std::string, int64_t> sizes;
  for (const Key& key : kind.keys) {
    const at::Tensor& tensor = weights.tensors[key.name];
    bool fits = tensor.dim() == static_cast<int64_t>(key.axes.size());
    for (std::size_t i = 0; fits && i < key.axes.size(); ++i) {
      fits = key.axes[i] != "1" || tensor.size(i) == 1;
      sizes.emplace(key.axes[i], tensor.size(i));
    }
    if (!fits) {
      fail("{}: `{}` must be ({}). Got {}", weights.path, key.name, listed(key.axes),
           shape_of(tensor));
    }
  }
  return sizes;
}

// Loads the file's tensors, after converting the module's to their dtypes. Skips a script's buffers
// that the module lacks: they may be non-persistent, which TorchScript does not record.
void load(Counterpart& made) {
  const StateDict own = state_dict(*made.module);
  StateDict tensors;
  for (const auto& item : made.weights.tensors) {
    std::string name = item.key();
    for (const Key& key : made.kind.keys) {
      if (key.name == name) name = key.own;
    }
    if (made.weights.optional.count(item.key()) && !own.contains(name)) {
      made.ignored.push_back(item.key());
      continue;
    }
    made.loaded.push_back(item.key());
    tensors.insert(name, item.value());
    if (!own.contains(name) || !item.value().is_floating_point()) continue;
    const at::Tensor& parameter = own[name];
    parameter.set_data(parameter.detach().to(item.value().scalar_type()));
  }
  load_state_dict(*made.module, tensors);
}

}  // namespace

Weights read_weights(const std::string& path, const std::string& prefix) {
  io::OpenWeights file(path);
  const Manifest& manifest = file.manifest;
  auto& tensors = file.manifest.tensors;
  if (tensors.empty()) fail("{} contains no parameters or buffers", path);
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(shown(tensor.name));
  std::erase_if(tensors, [&](const auto& tensor) {
    return !tensor.name.starts_with(prefix) || tensor.name.size() == prefix.size();
  });
  if (tensors.empty()) {
    fail("{} has no name that begins with {}; it contains {}", path, prefix, listed(names, 8));
  }
  const bool lacks_dot =
      !prefix.empty() && std::all_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
        return tensor.name[prefix.size()] == '.';
      });
  if (lacks_dot) {
    fail("--prefix {0}: must include the dot, as in --prefix {0}.; {1} contains {2}", prefix, path,
         shown(tensors.front().name));
  }
  Weights part{path, manifest.format, prefix.empty() ? manifest.class_name : "", StateDict(), {},
               {}};
  const auto own = [&](const std::string& text) {
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  };
  const auto add = [&](const std::string& name, const std::string& value) {
    if (name.starts_with(prefix)) part.values.emplace(own(name), own(value));
  };
  for (const auto& value : manifest.values) add(value.name, value.text);
  for (const auto& [name, text] : manifest.metadata) add(name, text);  // values may be names
  for (auto& tensor : tensors) {
    tensor.name = own(tensor.name);
    // A script saves all its buffers, persistent or not, and does not record which are.
    if (manifest.format == WeightsFormat::TorchScript && tensor.role == TensorRole::Buffer) {
      part.optional.insert(tensor.name);
    }
  }
  part.tensors = io::all_tensors(file);
  return part;
}

at::Tensor given(const Call& call, const std::string& name) {
  const auto at = call.find(name);
  return at == call.end() ? at::Tensor() : at->second;
}

void Params::allow(const std::string& subject, const Names& known) const {
  for (const auto& [key, value] : for_preset()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (known.empty()) fail("--param {}: {} has no parameters", key, subject);
    fail("--param {}: {} has no such parameter{}", key, subject, cli::suggestion(key, known));
  }
}

std::optional<double> Params::real(const std::string& key) const {
  const auto given = text(key);
  const auto value = cli::real_number(given.value_or(""));
  if (given && !value) fail("--param {} must be a number. Got {}", key, *given);
  return value;
}

std::optional<int64_t> Params::integer(const std::string& key) const {
  const auto value = text(key);
  const auto number = cli::parse_integer(value.value_or(""));
  if (value && !number) fail("--param {} must be an integer. Got {}", key, *value);
  return number;
}

bool Params::flag(const std::string& key, bool otherwise) const {
  const std::string value = text(key).value_or(otherwise ? "true" : "false");
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  fail("--param {} must be true or false. Got {}", key, value);
}

Scale Params::scale(const std::string& key, const Scale& otherwise) const {
  const auto value = text(key);
  if (!value) return otherwise;
  if (*value == "none") return Scale::None;
  if (*value == "sqrt_dim") return Scale::SqrtDim;
  const auto number = cli::real_number(*value);
  if (!number) fail("--param {} must be none, sqrt_dim or a number. Got {}", key, *value);
  return Scale(*number);
}

at::ScalarType Counterpart::type() const { return state_dict(*module)[0].value().scalar_type(); }

at::Tensor Counterpart::table() const {
  for (const Key& key : kind.keys) {
    if (std::find(key.axes.begin(), key.axes.end(), "max_len") == key.axes.end()) continue;
    const at::Tensor table = state_dict(*module)[key.name].detach();
    return table.view({-1, table.size(-1)});
  }
  return {};
}

Counterpart make_counterpart(const Weights& weights, const std::string& name, const Names& params) {
  const Kind& kind = find_kind(weights, name);
  Counterpart made{kind, weights, Params(params), {}};
  made.params.allow(kind.names.front(), kind.params);
  made.sizes = sizes_of(kind, weights);
  kind.build(made);
  load(made);
  made.module->eval();
  return made;
}

Names known_modules() {
  std::set<std::string> names;  // kinds that differ in their keys may share one
  for (const Kind& kind : kinds()) names.insert(kind.names.begin(), kind.names.end());
  return {names.begin(), names.end()};
}

std::string module_names() {
  std::vector<std::vector<std::string>> rows = {{"NAME", "C++ class", "from", "keys"}};
  for (const Kind& kind : kinds()) {
    rows.push_back({kind.names.front(), kind.module, kind.source, keys_of({&kind})});
  }
  return cli::text_table(rows, 2);
}

}  // namespace posenc::parity
