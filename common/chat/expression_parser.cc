// SPDX-License-Identifier: Apache-2.0
#include "common/chat/expression_parser.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace setu::chat {
namespace {

template <typename Node>
ExprPtr NewExpr(int line, Node node) {
  auto expr = std::make_unique<Expr>();
  expr->line = line;
  expr->node = std::move(node);
  return expr;
}

ExprPtr NewString(int line, std::string text) {
  return NewExpr(line, Literal{std::make_shared<const Text>(std::move(text), false)});
}

// true, none... in both spellings.
std::optional<Value> Constant(std::string_view name) {
  if (name == "true" || name == "True") return Value(true);
  if (name == "false" || name == "False") return Value(false);
  if (name == "none" || name == "None") return Value(None{});
  return std::nullopt;
}

}  // namespace

absl::StatusOr<ExprPtr> ExpressionParser::ParseTuple() {
  const int line = stream_.line();
  SETU_ASSIGN_OR_RETURN(ExprPtr first, Parse());
  if (!stream_.IsOperator(",")) return first;
  ListDisplay list;
  list.items.push_back(std::move(first));
  while (stream_.TakeOperator(",")) {
    const TokenKind next = stream_.Peek().kind;
    if (next == TokenKind::kBlockEnd || next == TokenKind::kPrintEnd) break;
    SETU_ASSIGN_OR_RETURN(ExprPtr item, Parse());
    list.items.push_back(std::move(item));
  }
  return NewExpr(line, std::move(list));
}

absl::StatusOr<ExprPtr> ExpressionParser::Parse() {
  const TokenStream::Level level(stream_);
  SETU_RETURN_IF_ERROR(level.Check());
  const int line = stream_.line();
  SETU_ASSIGN_OR_RETURN(ExprPtr then, ParseOr());
  if (!stream_.TakeName("if")) return then;
  Conditional conditional;
  conditional.then = std::move(then);
  SETU_ASSIGN_OR_RETURN(conditional.condition, ParseOr());
  if (stream_.TakeName("else")) {
    SETU_ASSIGN_OR_RETURN(conditional.otherwise, Parse());
  }
  return NewExpr(line, std::move(conditional));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseUnconditional() { return ParseOr(); }

absl::StatusOr<ExprPtr> ExpressionParser::ParseLogic(Parser operand, std::string_view name,
                                                     bool is_and) {
  const int line = stream_.line();
  SETU_ASSIGN_OR_RETURN(ExprPtr first, (this->*operand)());
  if (!stream_.IsName(name)) return first;
  Logic logic = {.is_and = is_and, .operands = {}};
  logic.operands.push_back(std::move(first));
  while (stream_.TakeName(name)) {
    SETU_ASSIGN_OR_RETURN(ExprPtr next, (this->*operand)());
    logic.operands.push_back(std::move(next));
  }
  return NewExpr(line, std::move(logic));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseOr() {
  return ParseLogic(&ExpressionParser::ParseAnd, "or", false);
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseAnd() {
  return ParseLogic(&ExpressionParser::ParseNot, "and", true);
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseNot() {
  const int line = stream_.line();
  if (!stream_.TakeName("not")) return ParseComparison();
  const TokenStream::Level level(stream_);
  SETU_RETURN_IF_ERROR(level.Check());
  SETU_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  return NewExpr(line, Negation{std::move(operand)});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseComparison() {
  const int line = stream_.line();
  SETU_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  Comparison comparison;
  for (;;) {
    std::optional<Operator> found;
    for (const auto& [text, op] : {std::pair<std::string_view, Operator>{"==", Operator::kEqual},
                                   {"!=", Operator::kNotEqual},
                                   {"<", Operator::kLess},
                                   {"<=", Operator::kLessEqual},
                                   {">", Operator::kGreater},
                                   {">=", Operator::kGreaterEqual}}) {
      if (!found && stream_.TakeOperator(text)) found = op;
    }
    if (!found && stream_.TakeName("in")) found = Operator::kIn;
    if (!found && stream_.IsName("not") && stream_.Peek(1).text == "in") {
      stream_.Take();
      stream_.Take();
      found = Operator::kNotIn;
    }
    if (!found) break;
    SETU_ASSIGN_OR_RETURN(ExprPtr next, ParseSum());
    comparison.rest.emplace_back(*found, std::move(next));
  }
  if (comparison.rest.empty()) return first;
  comparison.first = std::move(first);
  return NewExpr(line, std::move(comparison));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseOperations(Parser operand,
                                                          const Operators& operators) {
  const int line = stream_.line();
  SETU_ASSIGN_OR_RETURN(ExprPtr first, (this->*operand)());
  Operation operation;
  for (;;) {
    std::optional<Operator> found;
    for (const auto& [text, op] : operators) {
      if (!found && stream_.TakeOperator(text)) found = op;
    }
    if (!found) break;
    SETU_ASSIGN_OR_RETURN(ExprPtr next, (this->*operand)());
    operation.rest.emplace_back(*found, std::move(next));
  }
  if (operation.rest.empty()) return first;
  operation.first = std::move(first);
  return NewExpr(line, std::move(operation));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSum() {
  return ParseOperations(&ExpressionParser::ParseConcatenation,
                         {{"+", Operator::kAdd}, {"-", Operator::kSubtract}});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseConcatenation() {
  return ParseOperations(&ExpressionParser::ParseProduct, {{"~", Operator::kConcatenate}});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseProduct() {
  return ParseOperations(&ExpressionParser::ParsePower, {{"*", Operator::kMultiply},
                                                         {"/", Operator::kDivide},
                                                         {"//", Operator::kFloorDivide},
                                                         {"%", Operator::kModulo}});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePower() {
  return ParseOperations(&ExpressionParser::ParseSigned, {{"**", Operator::kPower}});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSigned() {
  const int line = stream_.line();
  // A sign binds tighter than a filter: -x|abs is (-x)|abs.
  size_t signs = 0;
  bool negative = false;
  while (stream_.IsOperator("-") || stream_.IsOperator("+")) {
    negative ^= stream_.Take().text == "-";
    ++signs;
  }
  SETU_ASSIGN_OR_RETURN(ExprPtr operand, ParsePrimary());
  if (signs == 0) return ParseLinks(std::move(operand), true);
  SETU_ASSIGN_OR_RETURN(operand, ParseLinks(std::move(operand), false));
  return ParseLinks(NewExpr(line, Sign{negative, std::move(operand)}), true);
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePrimary() {
  const Token& next = stream_.Peek();
  const int line = next.line;
  switch (next.kind) {
    case TokenKind::kString: {
      std::string text;
      while (stream_.Peek().kind == TokenKind::kString) text += stream_.Take().text;
      return NewString(line, std::move(text));
    }
    case TokenKind::kInteger:
      return NewExpr(line, Literal{stream_.Take().integer});
    case TokenKind::kFloat:
      return NewExpr(line, Literal{stream_.Take().real});
    case TokenKind::kName: {
      const std::string name = stream_.Take().text;
      if (std::optional<Value> constant = Constant(name)) return NewExpr(line, Literal{*constant});
      return NewExpr(line, Name{name});
    }
    default:
      break;
  }
  if (stream_.TakeOperator("(")) return ParseBrackets(")");
  if (stream_.TakeOperator("[")) return ParseBrackets("]");
  if (stream_.TakeOperator("{")) return ParseDict();
  return stream_.Unexpected("an expression");
}

// (a) is a; (a,), (a, b), () and [...] are lists.
absl::StatusOr<ExprPtr> ExpressionParser::ParseBrackets(std::string_view closing) {
  const int line = stream_.line();
  ListDisplay list;
  bool comma = closing == "]";
  while (!stream_.TakeOperator(closing)) {
    SETU_ASSIGN_OR_RETURN(ExprPtr item, Parse());
    list.items.push_back(std::move(item));
    if (stream_.TakeOperator(",")) {
      comma = true;
    } else if (!stream_.IsOperator(closing)) {
      return stream_.Unexpected(absl::StrCat("',' or '", std::string(closing), "'"));
    }
  }
  if (!comma && list.items.size() == 1) return std::move(list.items[0]);
  return NewExpr(line, std::move(list));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseDict() {
  const int line = stream_.line();
  DictDisplay dict;
  while (!stream_.TakeOperator("}")) {
    SETU_ASSIGN_OR_RETURN(ExprPtr key, Parse());
    SETU_RETURN_IF_ERROR(stream_.ExpectOperator(":"));
    SETU_ASSIGN_OR_RETURN(ExprPtr value, Parse());
    dict.items.emplace_back(std::move(key), std::move(value));
    if (!stream_.TakeOperator(",") && !stream_.IsOperator("}")) {
      return stream_.Unexpected("',' or '}'");
    }
  }
  return NewExpr(line, std::move(dict));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseLinks(ExprPtr base, bool with_filters) {
  const int line = stream_.line();
  Chain chain;
  for (;;) {
    absl::StatusOr<Link> link = absl::InternalError("");
    if (stream_.TakeOperator(".")) {
      const Token token = stream_.Take();
      if (token.kind == TokenKind::kName) {
        link = Attribute{token.text};
      } else if (token.kind == TokenKind::kInteger) {
        link = Subscript{NewExpr(line, Literal{token.integer})};
      } else {
        return ErrorAt(line, "expected a name behind '.'");
      }
    } else if (stream_.TakeOperator("[")) {
      link = ParseSubscript();
    } else if (stream_.TakeOperator("(")) {
      absl::StatusOr<std::vector<Argument>> arguments = ParseArguments();
      if (!arguments.ok()) return arguments.status();
      link = Call{*std::move(arguments)};
    } else if (with_filters && stream_.TakeOperator("|")) {
      link = ParseFilter();
    } else if (with_filters && stream_.TakeName("is")) {
      link = ParseTest();
    } else {
      break;
    }
    if (!link.ok()) return link.status();
    chain.links.push_back(*std::move(link));
  }
  if (chain.links.empty()) return base;
  chain.base = std::move(base);
  return NewExpr(line, std::move(chain));
}

// Behind "[".
absl::StatusOr<Link> ExpressionParser::ParseSubscript() {
  ExprPtr parts[3];
  size_t colons = 0;
  while (!stream_.TakeOperator("]")) {
    if (stream_.TakeOperator(":")) {
      if (++colons > 2) return stream_.Unexpected("']'");
    } else if (parts[colons] == nullptr) {
      SETU_ASSIGN_OR_RETURN(parts[colons], Parse());
    } else {
      return stream_.Unexpected("':' or ']'");
    }
  }
  if (colons > 0) return Slice{std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
  if (parts[0] == nullptr) return stream_.Unexpected("an index");
  return Subscript{std::move(parts[0])};
}

absl::StatusOr<std::vector<Argument>> ExpressionParser::ParseArguments() {
  std::vector<Argument> arguments;
  while (!stream_.TakeOperator(")")) {
    Argument argument;
    if (stream_.Peek().kind == TokenKind::kName && stream_.Peek(1).kind == TokenKind::kOperator &&
        stream_.Peek(1).text == "=") {
      argument.name = stream_.Take().text;
      stream_.Take();
    } else if (!arguments.empty() && !arguments.back().name.empty()) {
      return stream_.Unexpected("an argument by name");
    }
    SETU_ASSIGN_OR_RETURN(argument.value, Parse());
    arguments.push_back(std::move(argument));
    if (!stream_.TakeOperator(",") && !stream_.IsOperator(")")) {
      return stream_.Unexpected("',' or ')'");
    }
  }
  return arguments;
}

absl::StatusOr<Link> ExpressionParser::ParseFilter() {
  Filter filter = {.name = stream_.Peek().text, .arguments = {}};
  SETU_RETURN_IF_ERROR(stream_.Expect(TokenKind::kName, "a filter's name"));
  if (stream_.TakeOperator("(")) {
    SETU_ASSIGN_OR_RETURN(filter.arguments, ParseArguments());
  }
  return filter;
}

// Behind "is". One argument may stand without brackets: x is divisibleby 3.
absl::StatusOr<Link> ExpressionParser::ParseTest() {
  Test test;
  test.negated = stream_.TakeName("not");
  test.name = stream_.Peek().text;
  SETU_RETURN_IF_ERROR(stream_.Expect(TokenKind::kName, "a test's name"));
  if (stream_.TakeOperator("(")) {
    SETU_ASSIGN_OR_RETURN(test.arguments, ParseArguments());
  } else if (BeginsTestArgument()) {
    const TokenStream::Level level(stream_);
    SETU_RETURN_IF_ERROR(level.Check());
    SETU_ASSIGN_OR_RETURN(ExprPtr value, ParsePrimary());
    SETU_ASSIGN_OR_RETURN(value, ParseLinks(std::move(value), false));
    test.arguments.push_back({.name = "", .value = std::move(value)});
  }
  return test;
}

bool ExpressionParser::BeginsTestArgument() const {
  const Token& next = stream_.Peek();
  switch (next.kind) {
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kName:
      return next.text != "else" && next.text != "or" && next.text != "and" && next.text != "is" &&
             next.text != "if" && next.text != "in" && next.text != "not";
    default:
      return stream_.IsOperator("[") || stream_.IsOperator("{");
  }
}

}  // namespace setu::chat
