// SPDX-License-Identifier: Apache-2.0
// A parsed template. Chains of operators and of links are flat, so the tree is only as deep as the
// source nests.
#ifndef SETU_COMMON_CHAT_AST_H_
#define SETU_COMMON_CHAT_AST_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/chat/value.h"

namespace setu::chat {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;
struct Statement;
using Body = std::vector<Statement>;

enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcatenate,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Argument {
  std::string name;  // empty: by position
  ExprPtr value;
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListDisplay {  // [a, b] and (a, b)
  std::vector<ExprPtr> items;
};
struct DictDisplay {
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
struct Conditional {                   // a if b else c
  ExprPtr condition, then, otherwise;  // otherwise: null where there is none
};
struct Negation {  // not a
  ExprPtr operand;
};
struct Sign {  // -a, +a
  bool negative = false;
  ExprPtr operand;
};
struct Logic {  // a and b and c, or with `or`
  bool is_and = false;
  std::vector<ExprPtr> operands;
};
struct Operation {  // a + b - c: from the left
  ExprPtr first;
  std::vector<std::pair<Operator, ExprPtr>> rest;
};
struct Comparison {  // a < b <= c: each neighbouring pair
  ExprPtr first;
  std::vector<std::pair<Operator, ExprPtr>> rest;
};

struct Attribute {  // .name
  std::string name;
};
struct Subscript {  // [index]
  ExprPtr index;
};
struct Slice {  // [start:stop:step], each may be null
  ExprPtr start, stop, step;
};
struct Call {
  std::vector<Argument> arguments;
};
struct Filter {
  std::string name;
  std::vector<Argument> arguments;
};
struct Test {
  std::string name;
  bool negated = false;
  std::vector<Argument> arguments;
};
using Link = std::variant<Attribute, Subscript, Slice, Call, Filter, Test>;
struct Chain {  // base.name[0](x)|filter is test
  ExprPtr base;
  std::vector<Link> links;
};

struct Expr {
  int line = 0;
  std::variant<Literal, Name, ListDisplay, DictDisplay, Conditional, Negation, Sign, Logic,
               Operation, Comparison, Chain>
      node;
};

struct Data {
  std::string text;
};
struct Output {  // {{ value }}
  ExprPtr value;
};
struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct For {
  std::vector<std::string> targets;
  ExprPtr items, condition;  // condition: null where there is none
  Body body, otherwise;
};
struct Set {
  std::vector<std::string> targets;
  std::string attribute;  // set target.attribute = ...; empty: set target = ...
  ExprPtr value;          // null: what `body` writes
  Body body;
};
struct Macro {
  std::string name;
  std::vector<Argument> parameters;  // value: the default, null where there is none
  Body body;
};
struct MacroDefinition {
  std::unique_ptr<Macro> macro;
};
struct Block {  // {% generation %}: only groups
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  int line = 0;
  std::variant<Data, Output, If, For, Set, MacroDefinition, Block, Break, Continue> node;
};

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_AST_H_
