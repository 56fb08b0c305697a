#include "weights/torch/state_dict_walker.h"

#include <utility>

#include "weights/common/tensor_list.h"

namespace posenc::io {
namespace {

constexpr std::size_t kDeepestObject = 200;
constexpr uint64_t kVisit = 100;       // units of work
constexpr uint64_t kThrown = 2000;     // for an exception
constexpr uint64_t kMostListed = 100;  // of a list that are listed one by one

// Every module has these two, and they are not weights.
bool is_noise(std::string_view attribute) {
  return attribute == "training" || attribute == "_is_full_backward_hook";
}

}  // namespace

void StateDictWalker::run(PickleId root, const FindScriptClass& find_class) {
  find_class_ = find_class ? &find_class : nullptr;
  visit(root, Context::Plain, nullptr, "", true);
  while (!frames_.empty()) {
    if (!step()) frames_.pop_back();
  }
  drop_ambiguous_names();
}

// Moves on to the next item of the innermost container; returns false at its end.
bool StateDictWalker::step() {
  const Pickle& pickle = objects_.pickle();
  Frame& frame = frames_.back();
  name_.resize(frame.name_size);
  if (frame.at == kNoObject && frame.later != kNoObject) {
    frame.at = pickle.items(std::exchange(frame.later, kNoObject));
    if (frame.form == Frame::Form::Pairs) frame.form = Frame::Form::Mapping;
  }
  if (frame.at == kNoObject) return false;

  PickleId key = kNoObject;
  PickleId value = pickle.item(frame.at);
  frame.at = pickle.next(frame.at);
  if (frame.form == Frame::Form::Mapping) {
    if (frame.at == kNoObject) {
      throw WeightsError(WeightsErrorCode::Corrupt, "holds a dict with a key without a value");
    }
    key = std::exchange(value, pickle.item(frame.at));
    frame.at = pickle.next(frame.at);
  } else if (frame.form == Frame::Form::Pairs) {
    if ((!pickle.is(value, PickleKind::Tuple) && !pickle.is(value, PickleKind::List)) ||
        pickle.count(value) != 2) {
      throw WeightsError(WeightsErrorCode::Corrupt, "holds a dict that is not made of pairs");
    }
    const auto first = pickle.items(value);
    key = pickle.item(first);
    value = pickle.item(pickle.next(first));
  }
  const std::string last_name =
      key == kNoObject ? std::to_string(frame.index++) : key_text(objects_, key);
  budget_.work(last_name.size());
  if (frames_.size() > 1) name_ += '.';
  name_ += last_name;
  const bool listed =
      frame.listed && (frame.form != Frame::Form::Sequence || frame.index <= kMostListed);
  visit(value, frame.context, frame.script, last_name, listed);
  return true;
}

void StateDictWalker::visit(PickleId id, Context context, const ScriptClass* script,
                            std::string_view last_name, bool listed) {
  budget_.work(kVisit);
  id = objects_.resolve(id);
  std::optional<ManifestTensor> tensor;
  try {
    tensor = objects_.read(id);
  } catch (const WeightsError& error) {
    if (error.code() != WeightsErrorCode::Unsupported) throw error.in_tensor(name_);
    budget_.work(kThrown);
    return add_opaque(unreadable(error), EntryKind::Unreadable);
  }
  if (tensor) {
    add_tensor(std::move(*tensor), context, script, std::string(last_name));
    return;
  }
  if (auto text = plain_text(objects_, id)) {
    if (context != Context::ModuleAttribute || !is_noise(last_name)) {
      add_value(std::move(*text), listed);
    }
    return;
  }
  if (!enter(id, context, listed)) add_object(id, context, script, last_name);
}

// An object that is neither a tensor nor a value nor a container.
void StateDictWalker::add_object(PickleId id, Context context, const ScriptClass* script,
                                 std::string_view last_name) {
  if (const auto tensor = objects_.unreadable_tensor(id)) {
    const auto role = role_of(context, script, std::string(last_name));
    return add_opaque(*tensor, role ? EntryKind::Unreadable : EntryKind::Other);
  }
  const std::string what = objects_.describe(id);
  // Such as the weights of a quantised linear layer.
  if (find_class_ != nullptr && what.starts_with("__torch__.torch.classes.") &&
      search_.in_state(id)) {
    return add_opaque("tensors packed in an object of class " + what, EntryKind::Unreadable);
  }
  if (objects_.is_module(id))
    return add_opaque("a whole module of class " + what, EntryKind::Module);
  const bool is_unknown = context == Context::Plain && find_class_ == nullptr &&
                          objects_.pickle().is(id, PickleKind::Call) &&
                          objects_.called(id) == Global::Unknown;
  if (is_unknown && (search_.in_arguments(id) || search_.in_items(id))) {
    return add_opaque("a container of class " + what + " with tensors inside",
                      EntryKind::Container);
  }
  if (is_unknown && search_.in_state(id)) {
    return add_opaque("an object of class " + what + " with tensors among its attributes",
                      EntryKind::Object);
  }
  add_opaque(what);
}

// The items of a subclass of dict or list lie open, whatever else its class has.
bool StateDictWalker::enter_unknown(PickleId id, bool listed) {
  const PickleKind kind = objects_.pickle().items_kind(id);
  if (kind != PickleKind::Dict && kind != PickleKind::List) return false;
  if (objects_.called(id) != Global::Unknown || !search_.in_items(id)) return false;
  const bool is_dict = kind == PickleKind::Dict;
  push(kNoObject, id, is_dict ? Frame::Form::Mapping : Frame::Form::Sequence, Context::Plain,
       nullptr, listed);
  return true;
}

// Enters `id` if it is a container, and returns whether it is.
bool StateDictWalker::enter(PickleId id, Context context, bool listed) {
  const Pickle& pickle = objects_.pickle();
  const Context inside = context == Context::Plain ? Context::Plain : Context::InsideAttribute;
  switch (pickle.kind(id)) {
    case PickleKind::Tuple:
    case PickleKind::List:
      push(id, kNoObject, Frame::Form::Sequence, inside, nullptr, listed);
      return true;
    case PickleKind::Dict:
      push(id, kNoObject, Frame::Form::Mapping, inside, nullptr, listed);
      return true;
    case PickleKind::Call: break;
    default: return false;
  }
  const Global function = objects_.called(id);
  if (function == Global::Dict || function == Global::Sequence) {
    const TupleItems arguments(pickle, pickle.arguments(id));
    const PickleId first = arguments.empty() ? kNoObject : arguments[0];
    const bool is_list = pickle.is(first, PickleKind::List) || pickle.is(first, PickleKind::Tuple);
    if (function == Global::Sequence) {
      push(is_list ? first : kNoObject, id, Frame::Form::Sequence, inside, nullptr, listed);
    } else if (is_list) {
      push(first, id, Frame::Form::Pairs, inside, nullptr, listed);
    } else {
      push(pickle.is(first, PickleKind::Dict) ? first : kNoObject, id, Frame::Form::Mapping, inside,
           nullptr, listed);
    }
    return true;
  }
  if (find_class_ == nullptr) return enter_unknown(id, listed);
  if (context == Context::InsideAttribute || !pickle.is(pickle.state(id), PickleKind::Dict)) {
    return false;
  }
  const std::string name = pickle.global(pickle.callable(id));
  if (!name.starts_with("__torch__.")) return false;
  const ScriptClass* script = (*find_class_)(name);
  if (script != nullptr && !script->is_module) return false;
  push(pickle.state(id), kNoObject, Frame::Form::Mapping, Context::ModuleAttribute, script, listed);
  return true;
}

void StateDictWalker::push(PickleId source, PickleId later, Frame::Form form, Context context,
                           const ScriptClass* script, bool listed) {
  if (frames_.size() == kDeepestObject) {
    throw WeightsError(WeightsErrorCode::LimitExceeded, "holds objects nested deeper than " +
                                                            std::to_string(kDeepestObject) +
                                                            " levels, or in a cycle");
  }
  const uint32_t at = source == kNoObject ? kNoObject : objects_.pickle().items(source);
  frames_.push_back({at, form, later, name_.size(), context, script, listed});
}

// The role that the class of a module gives to a tensor of it; nothing for one that is neither
// parameter nor buffer, and so none of the file's.
std::optional<TensorRole> StateDictWalker::role_of(Context context, const ScriptClass* script,
                                                   const std::string& last_name) {
  if (context == Context::InsideAttribute) return std::nullopt;
  if (context == Context::Plain || script == nullptr) return TensorRole::Unknown;
  if (script->parameters && script->parameters->count(last_name) != 0) return TensorRole::Parameter;
  if (script->buffers && script->buffers->count(last_name) != 0) return TensorRole::Buffer;
  if (script->parameters && script->buffers) return std::nullopt;
  return TensorRole::Unknown;
}

void StateDictWalker::add_tensor(ManifestTensor tensor, Context context, const ScriptClass* script,
                                 const std::string& last_name) {
  const auto role = role_of(context, script, last_name);
  if (!role) return add_opaque("a tensor that is neither parameter nor buffer");
  if (*role != TensorRole::Unknown) tensor.role = *role;
  tensor.name = name_;
  if (!list_.add(std::move(tensor))) clashing_.insert(name_);
}

// `{"a.b": x, "a": {"b": y}}`: it is ambiguous which one is meant.
void StateDictWalker::drop_ambiguous_names() {
  if (clashing_.empty()) return;
  std::erase_if(manifest_.tensors,
                [&](const ManifestTensor& tensor) { return clashing_.count(tensor.name) != 0; });
  for (const auto& name : clashing_) {
    name_ = name;
    add_opaque("one of several tensors of this name, joined by dots", EntryKind::Unreadable);
  }
}

// Twice the size of an entry, since its list grows by doubling.
uint64_t StateDictWalker::entry_bytes(const std::string& text) const {
  return 2 * (sizeof(ManifestEntry) + name_.size() + text.size());
}

void StateDictWalker::add_opaque(std::string text, EntryKind kind) {
  budget_.spend(entry_bytes(text));
  manifest_.opaque.push_back({name_, std::move(text), kind});
}

void StateDictWalker::add_value(std::string text, bool listed) {
  if (listed && budget_.list_value(entry_bytes(text))) {
    manifest_.values.push_back({name_, std::move(text)});
  } else {
    ++manifest_.more_values;
  }
}

}  // namespace posenc::io
