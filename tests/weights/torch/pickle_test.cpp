#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weights/files.h"
#include "weights/torch/make_zip.h"
#include "weights/torch/pickle/parser.h"

namespace posenc::testing::pickle_test {
namespace {

using namespace std::string_literals;
using io::Pickle;
using io::PickleId;
using io::PickleKind;

// A short description of an object.
std::string show(const Pickle& pickle, PickleId id) {
  const auto items = [&](PickleId container) {
    std::string out;
    for (auto at = pickle.items(container); at != io::kNoObject; at = pickle.next(at)) {
      out += (out.empty() ? "" : " ") + show(pickle, pickle.item(at));
    }
    return out;
  };
  switch (pickle.kind(id)) {
    case PickleKind::None: return "None";
    case PickleKind::Bool: return pickle.integer(id) != 0 ? "True" : "False";
    case PickleKind::Int: return std::to_string(pickle.integer(id));
    case PickleKind::BigInt: return "big" + std::to_string(pickle.text(id).size());
    case PickleKind::Float: return std::to_string(pickle.real(id));
    case PickleKind::Text: return "'" + std::string(pickle.text(id)) + "'";
    case PickleKind::Bytes: return "b'" + std::string(pickle.text(id)) + "'";
    case PickleKind::Global: return pickle.global(id);
    case PickleKind::Tuple: return "(" + items(id) + ")";
    case PickleKind::List: return "[" + items(id) + "]";
    case PickleKind::Dict: return "{" + items(id) + "}";
    case PickleKind::Set: return "set(" + items(id) + ")";
    case PickleKind::Persistent: return "at" + show(pickle, pickle.arguments(id));
    case PickleKind::Call: {
      std::string out = show(pickle, pickle.callable(id)) + show(pickle, pickle.arguments(id));
      if (pickle.items(id) != io::kNoObject) out += "+" + items(id);
      if (pickle.state(id) != io::kNoObject) out += "<-" + show(pickle, pickle.state(id));
      return out;
    }
  }
  return "?";
}

std::string parsed(const std::string& body, char protocol = 2) {
  const std::string bytes = "\x80"s + protocol + body + ".";
  io::Budget budget(bytes.size());
  Pickle pickle(bytes, budget);
  return show(pickle, io::parse_pickle(pickle));
}

std::string refused(const std::string& bytes) {
  return refusal([&] {
    io::Budget budget(bytes.size());
    Pickle pickle(bytes, budget);
    io::parse_pickle(pickle);
  });
}

TEST(Pickle, HasNumbers) {
  EXPECT_EQ(parsed("N"), "None");
  EXPECT_EQ(parsed("\x88"), "True");
  EXPECT_EQ(parsed("\x89"), "False");
  EXPECT_EQ(parsed("K\xff"), "255");
  EXPECT_EQ(parsed("M\xfe\xff"), "65534");
  EXPECT_EQ(parsed("J\xfe\xff\xff\xff"), "-2");
  EXPECT_EQ(parsed("\x8a\0"s), "0");
  EXPECT_EQ(parsed("\x8a\1\xff"), "-1");
  EXPECT_EQ(parsed("\x8a\2\xff\0"s), "255");
  EXPECT_EQ(parsed("\x8a\5\0\0\0\0\1"s), "4294967296");
  EXPECT_EQ(parsed("\x8a\x08\0\0\0\0\0\0\0\x80"s), "-9223372036854775808");
  EXPECT_EQ(parsed("\x8a\x09\0\0\0\0\0\0\0\x80\0"s), "big9");
  EXPECT_EQ(parsed("\x8b\1\0\0\0\x07"s), "7");
  EXPECT_EQ(parsed("G\x3f\xf8\0\0\0\0\0\0"s), "1.500000");
}

TEST(Pickle, HasTexts) {
  EXPECT_EQ(parsed("X\2\0\0\0ab"s), "'ab'");
  EXPECT_EQ(parsed("\x8c\2ab"), "'ab'");
  EXPECT_EQ(parsed("\x8d\2\0\0\0\0\0\0\0ab"s), "'ab'");
  EXPECT_EQ(parsed("U\2ab"), "'ab'");         // Python 2
  EXPECT_EQ(parsed("T\2\0\0\0ab"s), "'ab'");  // Python 2
  EXPECT_EQ(parsed("C\2ab"), "b'ab'");
  EXPECT_EQ(parsed("B\2\0\0\0ab"s), "b'ab'");
  EXPECT_EQ(parsed("\x8e\2\0\0\0\0\0\0\0ab"s), "b'ab'");
  EXPECT_EQ(parsed("\x96\2\0\0\0\0\0\0\0ab"s), "b'ab'");
}

TEST(Pickle, HasContainers) {
  EXPECT_EQ(parsed("(K\1K\2t"), "(1 2)");
  EXPECT_EQ(parsed(")"), "()");
  EXPECT_EQ(parsed("K\1\x85"), "(1)");
  EXPECT_EQ(parsed("K\1K\2\x86"), "(1 2)");
  EXPECT_EQ(parsed("K\1K\2K\3\x87"), "(1 2 3)");
  EXPECT_EQ(parsed("]K\1a(K\2K\3e"), "[1 2 3]");
  EXPECT_EQ(parsed("(K\1l"), "[1]");
  EXPECT_EQ(parsed("}K\1K\2s(K\3K\4u"), "{1 2 3 4}");
  EXPECT_EQ(parsed("(K\1K\2d"), "{1 2}");
  EXPECT_EQ(parsed("\x8f(K\1K\2\x90", 4), "set(1 2)");
  EXPECT_EQ(parsed("(K\1\x91", 4), "set(1)");
  EXPECT_EQ(parsed("(((K\1tt]t"), "(((1)) [])");
}

TEST(Pickle, NeverCalls) {
  EXPECT_EQ(parsed("cos\nsystem\nU\2id\x85R"), "os.system('id')");
  EXPECT_EQ(parsed("\x8c\2os\x8c\6system\x93\x8c\2id\x85R", 4), "os.system('id')");
  EXPECT_EQ(parsed("ca\nb\n)\x81}K\1K\2sb"), "a.b()<-{1 2}");
  EXPECT_EQ(parsed("ca\nb\n)}\x92", 4), "a.b()");
  EXPECT_EQ(parsed("ca\nb\n)R(K\1K\2u"), "a.b()+1 2");
  EXPECT_EQ(parsed("ca\nb\n)RK\1a"), "a.b()+1");
  EXPECT_EQ(parsed("U\7storageK\1\x86Q"), "at('storage' 1)");
}

TEST(Pickle, HasAMemoAndAStack) {
  EXPECT_EQ(parsed("K\7q\0"
                   "0h\0"s),
            "7");
  EXPECT_EQ(parsed("K\7r\1\0\0\0"
                   "0j\1\0\0\0"s),
            "7");
  EXPECT_EQ(parsed("K\7\x94K\x08\x94"
                   "00h\1h\0\x86"s,
                   4),
            "(8 7)");
  EXPECT_EQ(parsed("K\1"
                   "2\x86"),
            "(1 1)");
  EXPECT_EQ(parsed("K\1(K\2K\3"
                   "1"),
            "1");
  EXPECT_EQ(parsed("K\1(0"), "1");
  EXPECT_EQ(parsed("\x95\2\0\0\0\0\0\0\0K\1"s, 4), "1");
  EXPECT_EQ(parsed("K\1", 5), "1");
}

TEST(Pickle, RefusesByRule) {
  EXPECT_CONTAINS(refused("\x80\6N."), "Unsupported: holds a pickle of protocol 6; save it with");
  EXPECT_CONTAINS(refused("(dp0\n."), "Unsupported: holds a pickle of protocol 0 or 1, or none");
  EXPECT_CONTAINS(refused("\x80\2"), "Truncated: holds a pickle that is cut off: its byte 2");
  EXPECT_CONTAINS(refused("\x80\2X\xff\xff\xff\xff."), "Truncated: ");
  EXPECT_CONTAINS(refused("\x80\2"
                          "0."),
                  "Corrupt: holds a damaged pickle: an object is missing at");
  EXPECT_CONTAINS(refused("\x80\2Nt."), "a mark is missing at its byte 3");
  EXPECT_CONTAINS(refused("\x80\2N(\x85."), "an object is missing at its byte 4");
  EXPECT_CONTAINS(refused("\x80\2h\1."), "a memo entry that does not exist at its byte 2");
  EXPECT_CONTAINS(refused("\x80\2Nq\3h\1."), "a memo entry that does not exist at its byte 5");
  EXPECT_CONTAINS(refused("\x80\2NNa."), "items for an object that cannot have them at its byte 4");
  EXPECT_CONTAINS(refused("\x80\2](Na."), "items for no object at its byte 5");
  EXPECT_CONTAINS(refused("\x80\2}(Nu."), "a key without a value at its byte 5");
  EXPECT_CONTAINS(refused("\x80\2NNR."), "arguments that are not a tuple at its byte 4");
  EXPECT_CONTAINS(refused("\x80\2N}b."), "a state for no object at its byte 4");
  EXPECT_CONTAINS(refused("\x80\4K\1K\2\x93."), "a global without a name at its byte 6");
  EXPECT_CONTAINS(refused("\x80\2NN."), "more than one object is left at its byte 4");
  EXPECT_CONTAINS(refused("\x80\2I1\n."), "opcode 73, which PyTorch does not write, at its byte 2");
  EXPECT_CONTAINS(refused("\x80\2Nr\0\0\0\x10."s),
                  "LimitExceeded: holds a pickle with memo entry 268435456");
}

// A small file cannot allocate much: each of its bytes allows a bounded number of objects.
TEST(Pickle, IsBounded) {
  EXPECT_CONTAINS(refused("\x80\2" + std::string(3'000'000, ']') + "."),
                  "LimitExceeded: describes");
}

}  // namespace
}  // namespace posenc::testing::pickle_test
