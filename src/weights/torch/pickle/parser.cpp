#include "weights/torch/pickle/parser.h"

#include <limits>
#include <string>
#include <vector>

#include "weights/torch/pickle/cursor.h"
#include "weights/torch/pickle/opcodes.h"

namespace posenc::io {
namespace {

// A machine with a stack, marks and a memo, like Python's, whose only values are object ids.
class Parser {
 public:
  Parser(Pickle& out, std::size_t at)
      : bytes_(out.bytes()), budget_(out.budget()), out_(out), cursor_(out.bytes(), at) {}

  PickleId run() {
    if (bytes_.size() > std::numeric_limits<uint32_t>::max()) {
      throw WeightsError(WeightsErrorCode::LimitExceeded, "holds a pickle of more than 4 GiB");
    }
    if (static_cast<Opcode>(cursor_.take<uint8_t>()) != Opcode::Proto) {
      throw WeightsError(WeightsErrorCode::Unsupported,
                         "holds a pickle of protocol 0 or 1, or none",
                         "save it with pickle protocol 2");
    }
    const auto protocol = cursor_.take<uint8_t>();
    if (protocol < 2 || protocol > 5) {
      throw WeightsError(WeightsErrorCode::Unsupported,
                         "holds a pickle of protocol " + std::to_string(protocol),
                         "save it with pickle protocol 2");
    }
    none_ = out_.add_container(PickleKind::None);
    true_ = out_.add_scalar(PickleKind::Bool, 1);
    false_ = out_.add_scalar(PickleKind::Bool, 0);
    for (;;) {
      const auto opcode = static_cast<Opcode>(cursor_.take_opcode());
      if (opcode == Opcode::Stop) break;
      step(opcode);
    }
    const PickleId root = pop();
    if (!stack_.empty() || !marks_.empty()) throw cursor_.damaged("more than one object is left");
    return root;
  }

  std::size_t at() const { return cursor_.at(); }

 private:
  void step(Opcode opcode) {
    switch (opcode) {
      case Opcode::Frame: cursor_.need(cursor_.take<uint64_t>()); break;
      case Opcode::Mark: push_onto(marks_, static_cast<uint32_t>(stack_.size())); break;
      case Opcode::Pop:
        if (stack_.size() == floor() && !marks_.empty()) {
          marks_.pop_back();
        } else {
          pop();
        }
        break;
      case Opcode::PopMark: stack_.resize(pop_mark()); break;
      case Opcode::Dup: push(top()); break;

      case Opcode::None: push(none_); break;
      case Opcode::NewTrue: push(true_); break;
      case Opcode::NewFalse: push(false_); break;
      case Opcode::BinInt: push_int(static_cast<int32_t>(cursor_.take<uint32_t>())); break;
      case Opcode::BinInt1: push_small_int(cursor_.take<uint8_t>()); break;
      case Opcode::BinInt2: push_small_int(cursor_.take<uint16_t>()); break;
      case Opcode::Long1: push_long(cursor_.take<uint8_t>()); break;
      case Opcode::Long4: push_long(cursor_.take<uint32_t>()); break;
      case Opcode::BinFloat:
        push(out_.add_scalar(PickleKind::Float, cursor_.take_big_endian()));
        break;

      case Opcode::BinUnicode:
      case Opcode::BinString: push_text(PickleKind::Text, cursor_.take<uint32_t>()); break;
      case Opcode::ShortBinUnicode:
      case Opcode::ShortBinString: push_text(PickleKind::Text, cursor_.take<uint8_t>()); break;
      case Opcode::BinUnicode8: push_text(PickleKind::Text, cursor_.take<uint64_t>()); break;
      case Opcode::ShortBinBytes: push_text(PickleKind::Bytes, cursor_.take<uint8_t>()); break;
      case Opcode::BinBytes: push_text(PickleKind::Bytes, cursor_.take<uint32_t>()); break;
      case Opcode::BinBytes8:
      case Opcode::ByteArray8: push_text(PickleKind::Bytes, cursor_.take<uint64_t>()); break;

      case Opcode::EmptyTuple: push(out_.add_container(PickleKind::Tuple)); break;
      case Opcode::EmptyList: push(out_.add_container(PickleKind::List)); break;
      case Opcode::EmptyDict: push(out_.add_container(PickleKind::Dict)); break;
      case Opcode::EmptySet: push(out_.add_container(PickleKind::Set)); break;
      case Opcode::Tuple1: push_last(1); break;
      case Opcode::Tuple2: push_last(2); break;
      case Opcode::Tuple3: push_last(3); break;
      case Opcode::Tuple: push_marked(PickleKind::Tuple); break;
      case Opcode::List: push_marked(PickleKind::List); break;
      case Opcode::Dict: push_marked(PickleKind::Dict); break;
      case Opcode::FrozenSet: push_marked(PickleKind::Set); break;

      case Opcode::Append: append_from(stack_.size() - need(1), PickleKind::List); break;
      case Opcode::Appends: append_from(pop_mark(), PickleKind::List); break;
      case Opcode::AddItems: append_from(pop_mark(), PickleKind::Set); break;
      case Opcode::SetItem: append_from(stack_.size() - need(2), PickleKind::Dict); break;
      case Opcode::SetItems: append_from(pop_mark(), PickleKind::Dict); break;

      case Opcode::Global: push_global(); break;
      case Opcode::StackGlobal: {
        const PickleId name = pop_text();
        const PickleId module = pop_text();
        push(out_.add_global(module, name));
        break;
      }
      case Opcode::NewObjEx: pop(); [[fallthrough]];  // drops the keyword arguments
      case Opcode::NewObj:
      case Opcode::Reduce: {
        const PickleId arguments = pop();
        const PickleId callable = pop();
        if (!out_.is(arguments, PickleKind::Tuple)) {
          throw cursor_.damaged("arguments that are not a tuple");
        }
        push(out_.add_call(callable, arguments));
        break;
      }
      case Opcode::Build: {
        const PickleId state = pop();
        if (!out_.is(top(), PickleKind::Call)) throw cursor_.damaged("a state for no object");
        out_.set_state(top(), state);
        break;
      }
      case Opcode::BinPersId: push(out_.add_persistent(pop())); break;

      case Opcode::BinPut: put(cursor_.take<uint8_t>()); break;
      case Opcode::LongBinPut: put(cursor_.take<uint32_t>()); break;
      case Opcode::Memoize: put(memoized_); break;
      case Opcode::BinGet: get(cursor_.take<uint8_t>()); break;
      case Opcode::LongBinGet: get(cursor_.take<uint32_t>()); break;

      default:
        throw cursor_.damaged("opcode " + std::to_string(static_cast<unsigned>(opcode)) +
                              ", which PyTorch does not write,");
    }
  }

  PickleId take_line() {
    std::size_t size = 0;
    const std::size_t begin = cursor_.take_line(size);
    return out_.add_text(PickleKind::Text, begin, size);
  }
  // --- stack ---
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  // Throws unless that many objects are above the last mark.
  std::size_t need(std::size_t count) const {
    if (stack_.size() - floor() < count) throw cursor_.damaged("an object is missing");
    return count;
  }

  // Charged as capacity grows, not with each push: valid files push millions but hold few at once.
  void push_onto(std::vector<uint32_t>& numbers, uint32_t number) {
    if (numbers.size() == numbers.capacity()) {
      const std::size_t room = 2 * numbers.size() + 64;
      budget_.spend(room * sizeof number);
      numbers.reserve(room);
    }
    numbers.push_back(number);
  }

  void push(PickleId id) { push_onto(stack_, id); }

  PickleId top() const {
    need(1);
    return stack_.back();
  }

  PickleId pop() {
    const PickleId id = top();
    stack_.pop_back();
    return id;
  }

  PickleId pop_text() {
    const PickleId id = pop();
    if (!out_.is(id, PickleKind::Text)) throw cursor_.damaged("a global without a name");
    return id;
  }

  std::size_t pop_mark() {
    if (marks_.empty()) throw cursor_.damaged("a mark is missing");
    const std::size_t begin = marks_.back();
    marks_.pop_back();
    return begin;
  }

  // --- objects ---
  void push_int(int64_t value) {
    push(out_.add_scalar(PickleKind::Int, static_cast<uint64_t>(value)));
  }

  // Labels and token ids come in millions: equal ones share one object.
  void push_small_int(uint16_t value) {
    if (value >= small_ints_.size()) small_ints_.resize(std::size_t{value} + 1, kNoObject);
    PickleId& known = small_ints_[value];
    if (known == kNoObject) known = out_.add_scalar(PickleKind::Int, value);
    push(known);
  }

  void push_long(std::size_t size) {
    const std::size_t begin = cursor_.take_run(size);
    if (size > sizeof(uint64_t)) {
      push(out_.add_text(PickleKind::BigInt, begin, size));
      return;
    }
    const bool negative = size > 0 && (bytes_[begin + size - 1] & 0x80) != 0;
    uint64_t value = negative ? ~uint64_t{0} : 0;
    for (std::size_t i = size; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes_[begin + i]);
    }
    push_int(static_cast<int64_t>(value));
  }

  void push_text(PickleKind kind, uint64_t size) {
    push(out_.add_text(kind, cursor_.take_run(size), size));
  }

  void push_global() {
    const PickleId module = take_line();
    push(out_.add_global(module, take_line()));
  }

  void push_last(std::size_t count) { push_from(stack_.size() - need(count), PickleKind::Tuple); }

  void push_marked(PickleKind kind) { push_from(pop_mark(), kind); }

  void push_from(std::size_t begin, PickleKind kind) {
    const PickleId container = out_.add_container(kind);
    move_items(begin, container, kind);
    push(container);
  }

  // Moves everything from `begin` on into the object below it.
  void append_from(std::size_t begin, PickleKind kind) {
    if (begin == floor()) throw cursor_.damaged("items for no object");
    const PickleId container = stack_[begin - 1];
    if (!out_.is(container, kind) && !out_.is(container, PickleKind::Call)) {
      throw cursor_.damaged("items for an object that cannot have them");
    }
    if (out_.is(container, PickleKind::Call)) out_.add_items_kind(container, kind);
    move_items(begin, container, kind);
  }

  void move_items(std::size_t begin, PickleId container, PickleKind kind) {
    if (kind == PickleKind::Dict && (stack_.size() - begin) % 2 != 0) {
      throw cursor_.damaged("a key without a value");
    }
    for (std::size_t i = begin; i < stack_.size(); ++i) out_.append(container, stack_[i]);
    stack_.resize(begin);
  }

  // --- memo ---
  void put(uint64_t key) {
    // Writers count up, and each entry takes at least a byte of the pickle.
    if (key > cursor_.at()) {
      throw WeightsError(WeightsErrorCode::LimitExceeded,
                         "holds a pickle with memo entry " + std::to_string(key));
    }
    if (key >= memo_.size()) {
      budget_.spend((key + 1 - memo_.size()) * sizeof(PickleId));
      memo_.resize(key + 1, kNoObject);
    }
    if (memo_[key] == kNoObject) ++memoized_;
    memo_[key] = top();
  }

  void get(uint64_t key) {
    if (key >= memo_.size() || memo_[key] == kNoObject) {
      throw cursor_.damaged("a memo entry that does not exist");
    }
    push(memo_[key]);
  }

  std::string_view bytes_;
  Budget& budget_;
  Pickle& out_;
  PickleCursor cursor_;
  std::vector<PickleId> stack_;
  std::vector<uint32_t> marks_;  // heights of the stack
  std::vector<PickleId> memo_;
  std::vector<PickleId> small_ints_;  // by value
  uint64_t memoized_ = 0;
  PickleId none_ = kNoObject, true_ = kNoObject, false_ = kNoObject;
};

}  // namespace

PickleId parse_pickle(Pickle& into, std::size_t* at) {
  Parser parser(into, at == nullptr ? 0 : *at);
  const PickleId root = parser.run();
  if (at != nullptr) *at = parser.at();
  return root;
}

}  // namespace posenc::io
