#include "cli/modules/module_spec.h"

#include <algorithm>
#include <set>

#include "cli/error.h"
#include "cli/modules/kinds.h"
#include "cli/text_table.h"
#include "posenc/io/load.h"

namespace posenc::cli {
namespace {

using Candidates = std::vector<const Kind*>;

template <typename Keep>
Candidates filter(const Candidates& from, Keep keep) {
  Candidates kept;
  std::copy_if(from.begin(), from.end(), std::back_inserter(kept), keep);
  return kept;
}

Candidates every_kind() {
  Candidates all;
  for (const auto& kind : kinds()) all.push_back(&kind);
  return all;
}

Candidates named(const std::string& name) {
  return filter(every_kind(), [&](const Kind* kind) {
    return std::find(kind->names.begin(), kind->names.end(), name) != kind->names.end();
  });
}

bool has_keys(const Kind& kind, const StateDict& tensors) {
  return std::all_of(kind.keys.begin(), kind.keys.end(),
                     [&](const Key& key) { return tensors.contains(key.name); });
}

// Whether `kind` requires all keys of `other`, and more.
bool includes_keys(const Kind& kind, const Kind& other) {
  const auto needs = [&](const Key& key) {
    return std::any_of(kind.keys.begin(), kind.keys.end(),
                       [&](const Key& own) { return own.name == key.name; });
  };
  return kind.keys.size() > other.keys.size() &&
         std::all_of(other.keys.begin(), other.keys.end(), needs);
}

std::string keys_of(const Candidates& candidates) {
  std::vector<std::string> texts;
  for (const Kind* kind : candidates) {
    std::vector<std::string> names;
    for (const auto& key : kind->keys) names.push_back("`" + key.name + "`");
    texts.push_back(listed(names));
  }
  std::string text = texts.front();
  for (std::size_t i = 1; i < texts.size(); ++i) text += "; or " + texts[i];
  return text;
}

// Returns the candidate of `name` ("its class X" or "--module X") whose keys the file has.
const Kind& with_keys(const Candidates& candidates, const std::string& name,
                      const Weights& weights) {
  const auto fitting =
      filter(candidates, [&](const Kind* kind) { return has_keys(*kind, weights.tensors); });
  if (fitting.empty()) {
    fail("{}: {} must have the keys {}; the file contains {}", weights.path, name,
         keys_of(candidates), described(weights.tensors));
  }
  return *fitting.front();  // the combination of name and keys is unique
}

const Kind& find_kind(const Weights& weights, const std::string& name) {
  if (!name.empty()) {
    const auto candidates = named(name);
    if (candidates.empty()) {
      std::set<std::string> known;  // several kinds may share a name and differ in their keys
      for (const auto& kind : kinds()) known.insert(kind.names.begin(), kind.names.end());
      fail("--module {} is not known{}", name, suggestion(name, {known.begin(), known.end()}));
    }
    return with_keys(candidates, "--module " + name, weights);
  }
  const auto candidates = named(weights.class_name);
  if (!candidates.empty()) return with_keys(candidates, "class " + weights.class_name, weights);

  const auto fitting = filter(every_kind(), [&](const Kind* kind) {
    return kind->by_keys && has_keys(*kind, weights.tensors);
  });
  // The kind that requires the keys of all the others, and more, is the most specific.
  for (const Kind* kind : fitting) {
    if (std::all_of(fitting.begin(), fitting.end(), [&](const Kind* other) {
          return kind == other || includes_keys(*kind, *other);
        })) {
      return *kind;
    }
  }
  const std::string what = weights.class_name.empty()
                               ? "it has no class name"
                               : "its class " + shown(weights.class_name) + " is unknown";
  fail("{}: {}, and its keys match {}: {}. Choose one with --module NAME:\n{}", weights.path, what,
       fitting.empty() ? "no class" : "several classes", described(weights.tensors),
       module_names());
}

// The sizes given by the shapes, which must agree.
std::map<std::string, int64_t> sizes_of(const Kind& kind, const Weights& weights) {
  std::map<std::string, int64_t> sizes;
  std::map<std::string, std::string> first;  // the key that gave it first
  for (const auto& [name, axes, own] : kind.keys) {
    const at::Tensor& tensor = weights.tensors[name];
    bool fits = tensor.dim() == static_cast<int64_t>(axes.size());
    for (std::size_t i = 0; fits && i < axes.size(); ++i) {
      fits = axes[i] != "1" || tensor.size(i) == 1;
    }
    if (!fits) {
      fail("{}: `{}` must be ({}). Got {}", weights.path, name, listed(axes), shape_of(tensor));
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto [at, fresh] = sizes.emplace(axes[i], tensor.size(i));
      if (fresh) first[axes[i]] = name;
      if (at->second != tensor.size(i) && axes[i] != "1") {
        fail("{}: `{}` has {} {}, but `{}` has {}", weights.path, first[axes[i]], axes[i],
             at->second, name, tensor.size(i));
      }
    }
  }
  sizes.erase("1");
  return sizes;
}

// The file's tensors under the counterpart's keys. Skips a script's buffers that the counterpart
// lacks: they may be non-persistent, which TorchScript does not record.
StateDict under_own_keys(const Kind& kind, const Weights& weights, ModuleSpec& spec) {
  const StateDict own = state_dict(*spec.module);
  StateDict tensors;
  for (const auto& item : weights.tensors) {
    std::string name = item.key();
    for (const auto& key : kind.keys) {
      if (key.name == name && !key.own.empty()) name = key.own;
    }
    if (weights.optional.count(item.key()) && !own.contains(name)) {
      spec.ignored.push_back(item.key());
      continue;
    }
    tensors.insert(name, item.value());
    spec.loaded.push_back(item.key());
  }
  return tensors;
}

// Converts each tensor of the counterpart to the file's floating-point dtype; its values are about
// to be replaced.
void adopt_types(torch::nn::Module& module, const StateDict& tensors) {
  const StateDict present = state_dict(module);
  for (const auto& item : present) {
    if (!tensors.contains(item.key())) continue;
    const auto& from = tensors[item.key()];
    if (from.is_floating_point() && from.scalar_type() != item.value().scalar_type()) {
      item.value().set_data(item.value().detach().to(from.scalar_type()));
    }
  }
}

}  // namespace

at::Tensor given(const Call& call, const std::string& name) {
  const auto at = call.find(name);
  return at == call.end() ? at::Tensor() : at->second;
}

at::Tensor ModuleSpec::table() const {
  if (table_key.empty()) return {};
  const auto table = state_dict(*module)[table_key].detach();
  return table.view({-1, table.size(-1)});
}

ModuleSpec make_module_spec(const Weights& weights, const std::string& name, const Params& params) {
  const Kind& kind = find_kind(weights, name);
  params.allow(kind.names.front(), kind.params);
  ModuleSpec spec;
  spec.input = kind.input;
  spec.inputs = kind.inputs;
  spec.sizes = sizes_of(kind, weights);
  spec.optional = kind.optional;
  spec.aliases = kind.aliases;
  spec.table_key = kind.table_key;
  kind.build(params, weights, spec);
  const StateDict tensors = under_own_keys(kind, weights, spec);
  adopt_types(*spec.module, tensors);
  load_state_dict(*spec.module, tensors);
  spec.module->eval();
  return spec;
}

std::string module_names() {
  std::vector<std::vector<std::string>> rows = {{"NAME", "C++ class", "from", "keys"}};
  for (const auto& kind : kinds()) {
    rows.push_back({kind.names.front(), kind.module, kind.source, keys_of({&kind})});
  }
  return text_table(rows, 2);
}

}  // namespace posenc::cli
